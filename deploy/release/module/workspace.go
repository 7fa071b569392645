package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// writeWorkspaces has a checkout build with the client that lies in it, published or
// not: Go reads the client's go.mod at the version that is required, from the checkout
// too. The modules of tools get workspaces of their own: their libraries do not set
// the versions of the program's.
func writeWorkspaces(source, client, version string) error {
	for folder, uses := range map[string]string{
		".":              "use (\n\t.\n\t./httpapi/client\n)\n\nreplace " + client + " " + version + " => ./httpapi/client\n",
		"bench/peers":    "use .\n",
		"deploy/release": "use .\n",
	} {
		file := filepath.Join(source, folder, "go.mod")
		b, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the version of Go: %w", err)
		}
		f, err := modfile.Parse(file, b, nil)
		if err != nil {
			return err
		}
		text := "go " + f.Go.Version + "\n\n" + uses
		if err := os.WriteFile(filepath.Join(source, folder, "go.work"), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the workspace: %w", err)
		}
	}
	return nil
}
