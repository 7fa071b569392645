// Command module gives the modules of this repository their public paths. It changes
// the checkout in place: imports, go.mod, tests and documents.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	source := flag.String("source", ".", "git checkout of the repository")
	path := flag.String("path", "", "path of the main module, such as github.com/you/xtimer")
	version := flag.String("version", "v0.1.0", "version of the client that the main module requires")
	flag.Parse()
	if err := rename(*source, *path, *version); err != nil {
		fmt.Fprintln(os.Stderr, "module:", err)
		os.Exit(1)
	}
	fmt.Printf("The module is %[1]s. Commit the changes, then push the tags %[2]s and httpapi/client/%[2]s.\n", *path, *version)
}
