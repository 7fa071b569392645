package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	newPath = "github.com/you/xtimer"
	version = "v1.2.3"
)

// does runs a program in a folder and returns what it prints; it must succeed.
func does(t *testing.T, dir string, environment []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// renamed is a clone of the checkout that make module has given its path.
func renamed(t *testing.T) string {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "checkout")
	does(t, ".", nil, "git", "clone", "-q", "../../..", clone)
	if from := strings.TrimSpace(does(t, clone, nil, "go", "list", "-m")); strings.Contains(from, "\n") || strings.Contains(from, ".") {
		t.Skipf("the checkout has its path already: %s", from)
	}
	does(t, clone, nil, "make", "module", "MODULE="+newPath, "VERSION="+version)
	return clone
}

// TestCheckout: the renamed checkout compiles with its tests, in each module, nothing
// names the former path, and a second run gives another path.
func TestCheckout(t *testing.T) {
	clone := renamed(t)
	does(t, clone, nil, "git", "add", "-A")
	does(t, clone, nil, "go", "vet", "./...")
	does(t, clone, nil, "go", "test", "-count=1", "-run", "^(TestImports|TestTopLevel|TestDockerfile|TestSizes)$", "./cmd/xtimer")
	does(t, filepath.Join(clone, "httpapi/client"), nil, "go", "test", "-count=1", "./...")
	for _, tools := range []string{"deploy/release", "bench/peers"} {
		resolves(t, filepath.Join(clone, tools))
	}
	if out := does(t, clone, nil, "go", "tool", "gofumpt", "-l", "."); out != "" {
		t.Errorf("gofumpt would change: %s", out)
	}
	if left, err := exec.Command("git", "-C", clone, "grep", "-nE", `(^|[^[:alnum:]_./-])xtimer/(engine|httpapi|cmd|tier|wal|wheel)\b`, "--", ":!"+instructionsFile).Output(); err == nil {
		t.Errorf("the former path is left:\n%s", left)
	}

	does(t, clone, nil, "make", "module", "MODULE=example.org/timer")
	resolves(t, clone)
	if left, err := exec.Command("git", "-C", clone, "grep", "-n", newPath+"/", "--", ":!"+instructionsFile, ":!deploy/release/module", ":!docs/running.md", ":!docs/zh/running.md", ":!Makefile").Output(); err == nil {
		t.Errorf("the path of the first run is left:\n%s", left)
	}
	for file := range instructions {
		b, err := os.ReadFile(filepath.Join(clone, file))
		if err != nil || !strings.Contains(string(b), "go get example.org/timer/httpapi/client@v0.1.0") {
			t.Errorf("%s does not say how to add the client (%v)", file, err)
		}
	}
}

// resolves: each import of the packages of a module, and of their tests, is found. That
// they compile is seen once, by go vet: a compilation under every path takes minutes.
func resolves(t *testing.T, dir string) {
	t.Helper()
	does(t, dir, nil, "go", "list", "-deps", "-test", "./...")
}

// TestPublished: go install and a program with the client build from a proxy, with an
// empty module cache, and run.
func TestPublished(t *testing.T) {
	clone := renamed(t)
	proxy := t.TempDir()
	publish(t, proxy, newPath, clone)
	publish(t, proxy, newPath+"/httpapi/client", filepath.Join(clone, "httpapi/client"))

	// The libraries come from the cache of this machine, which is laid out as a proxy.
	cache := strings.TrimSpace(does(t, ".", nil, "go", "env", "GOMODCACHE"))
	others := strings.TrimSpace(does(t, ".", nil, "go", "env", "GOPROXY"))
	home := t.TempDir()
	environment := []string{
		"GOPATH=" + home, "GOMODCACHE=" + filepath.Join(home, "pkg/mod"), "GOBIN=" + filepath.Join(home, "bin"), "GOWORK=off",
		"GOPROXY=file://" + proxy + ",file://" + cache + "/cache/download," + others, "GOSUMDB=off",
		// As the release is built, so that the libraries come compiled from the build cache.
		"GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0",
	}
	does(t, home, environment, "go", "install", newPath+"/cmd/xtimer@"+version)
	program := filepath.Join(home, "bin/xtimer")
	if out := does(t, home, nil, program, "--version"); !strings.Contains(out, "xtimer "+version+" (") {
		t.Errorf("the version is %q", out)
	}

	address := serve(t, program)
	user := t.TempDir()
	if err := os.WriteFile(filepath.Join(user, "main.go"), []byte(userProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	does(t, user, environment, "go", "mod", "init", "example.com/user")
	does(t, user, environment, "go", "get", newPath+"/httpapi/client@"+version)
	if out := does(t, user, environment, "go", "run", ".", "http://"+address); out != "created billing/once\n" {
		t.Errorf("the program with the client prints %q", out)
	}
	if out := does(t, user, environment, "go", "list", "-m", "all"); out != "example.com/user\n"+newPath+"/httpapi/client "+version+"\n" {
		t.Errorf("the client brings modules along:\n%s", out)
	}
}

// userProgram is a program of a user of the client.
const userProgram = `package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"` + newPath + `/httpapi/client"
)

func main() {
	c, err := client.New(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	delay := time.Hour
	_, err = c.Put(context.Background(), client.Definition{
		App: "billing", Name: "once",
		Schedule: client.Schedule{Delay: &delay},
		Callback: client.Callback{URL: "http://127.0.0.1:9/"},
	})
	if err != nil {
		log.Fatal(err)
	}
	t, err := c.GetByName(context.Background(), "billing", "once")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("created %s/%s\n", t.App, t.Name)
}
`

// publish puts a module into the folder of a proxy.
func publish(t *testing.T, proxy, path, source string) {
	t.Helper()
	dir := filepath.Join(proxy, path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list": version + "\n", version + ".mod": string(mod),
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-02T03:04:05Z"}`, version),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := zip.CreateFromDir(f, module.Version{Path: path, Version: version}, source); err != nil {
		t.Fatal(err)
	}
}

// serve runs the server until the end of the test and returns its address.
func serve(t *testing.T, program string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	server := exec.Command(program, "serve", "--listen", address, "--data-dir", t.TempDir(), "--clock-wait", "0")
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return address
			}
		}
	}
	t.Fatal("the server is not ready after 30 seconds")
	return ""
}

// TestRefused: a path that Go would refuse is named before a file is changed.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ path, version, says string }{
		{"xtimer", "v1.2.3", "missing dot"},
		{"github.com/you/xtimer", "1.2.3", "invalid version"},
		{"github.com/you/xtimer/v2", "v2.0.0", "only v0 and v1"},
		{"github.com/you/xtimer", "v2.0.0", "v2"},
		{"github.com/you/x timer", "v1.2.3", "invalid char"},
	} {
		if err := rename("/nowhere", c.path, c.version); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v, not %q", c.path, c.version, err, c.says)
		}
	}
}
