package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

const instructionsFile = "deploy/release/module/instructions.json"

//go:embed instructions.json
var instructionsText []byte

// instructions are the passages about a client without a public path, by document, and
// what takes their place: with a path, go get is all that is needed. cmd/xtimer holds the
// passages against the documents.
var instructions = func() (all map[string]struct{ Now, Published string }) {
	if err := json.Unmarshal(instructionsText, &all); err != nil {
		panic(fmt.Sprintf("BUG: %s: %v", instructionsFile, err))
	}
	return all
}()

// withInstructions puts go get in the place of a passage of the document.
func withInstructions(name, text, from, to, version string) (string, error) {
	passage, ok := instructions[name]
	if !ok {
		return text, nil
	}
	client := to + "/httpapi/client@" + version
	if from != "xtimer" { // a former run has put the former command there
		before, after, found := strings.Cut(text, "go get "+from+"/httpapi/client@")
		if !found {
			return text, nil
		}
		return before + "go get " + client + strings.TrimLeft(after, "v0123456789.-+abcdefghijklmnopqrstuvwxyz"), nil
	}
	if !strings.Contains(text, passage.Now) {
		return "", fmt.Errorf("the passage about the client's path was not found; " + instructionsFile + " has the passage")
	}
	return strings.Replace(text, passage.Now, strings.Replace(passage.Published, "CLIENT", client, 1), 1), nil
}
