package main

import (
	"fmt"
	"strings"
)

const instructionsFile = "deploy/release/module/instructions.go"

// instructions are the passages about a client without a public path, by document.
// Once the client has one, go get is all that is needed.
var instructions = map[string][2]string{
	"httpapi/client/README.md": {
		"The module has no public path yet, so point your\n" +
			"`go.mod` at a checkout:\n\n```console\n" +
			"$ go mod edit -require xtimer/httpapi/client@v0.0.0 -replace xtimer/httpapi/client=../xtimer/httpapi/client\n",
		"Add the module to your program:\n\n```console\n$ go get %s\n",
	},
	"docs/delivery.md": {
		"The module is named `xtimer/httpapi/client`: in your `go.mod`, write `require xtimer/httpapi/client v0.0.0` and\n" +
			"`replace xtimer/httpapi/client => ../xtimer/httpapi/client` (the path of your copy), then run `go mod tidy`.",
		"Run `go get %s`.",
	},
	"docs/zh/delivery.md": {
		"模块名是 `xtimer/httpapi/client`：在您的 `go.mod` 里写 `require xtimer/httpapi/client v0.0.0` 和 " +
			"`replace xtimer/httpapi/client => ../xtimer/httpapi/client`（您的副本的路径），然后运行 `go mod tidy`。",
		"请运行 `go get %s`。",
	},
}

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
	if !strings.Contains(text, passage[0]) {
		return "", fmt.Errorf("the passage about the client's path was not found; " + instructionsFile + " has the passage")
	}
	return strings.Replace(text, passage[0], fmt.Sprintf(passage[1], client), 1), nil
}
