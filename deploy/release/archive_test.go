package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// emulators run programs of the other processor.
var emulators = map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}

// running is the command that runs a program of a processor on this machine.
func running(t *testing.T, processor, program string, args ...string) *exec.Cmd {
	t.Helper()
	if processor == runtime.GOARCH {
		return exec.Command(program, args...)
	}
	emulator, err := exec.LookPath(emulators[processor])
	if err != nil {
		t.Fatalf("%s is missing: apt-get install qemu-user-static", emulators[processor])
	}
	return exec.Command(emulator, append([]string{program}, args...)...)
}

// unpacked is the folder in an archive.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	does(t, "tar", "-xzf", archive, "-C", dir)
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(archive), ".tar.gz"))
}

// TestArchives unpacks the archives of Linux, and has the program in each fire a timer.
func TestArchives(t *testing.T) {
	for _, processor := range []string{"amd64", "arm64"} {
		t.Run(processor, func(t *testing.T) {
			dir := unpacked(t, released(t, "-linux-"+processor+".tar.gz"))
			for _, name := range []string{"LICENSE", "NOTICES", "README.md", "CHANGELOG.md", "xtimer.service", "completions/_xtimer", "man/xtimer.1"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
			version, err := running(t, processor, dir+"/xtimer", "--version").Output()
			if want := "xtimer " + versionOf(t) + " ("; err != nil || !strings.HasPrefix(string(version), want) {
				t.Errorf("%v: %q, not %q", err, version, want)
			}
			address := free(t)
			server := running(t, processor, dir+"/xtimer", "serve", "--listen", address, "--data-dir", t.TempDir(), "--clock-wait", "0")
			starts(t, server)
			fires(t, address, "")
		})
	}
}

// TestDarwin: the programs for macOS cannot run here; they are for that system, and
// for the processor that the name says.
func TestDarwin(t *testing.T) {
	for processor, says := range map[string]string{"amd64": "Mach-O 64-bit x86_64", "arm64": "Mach-O 64-bit arm64"} {
		dir := unpacked(t, released(t, "-darwin-"+processor+".tar.gz"))
		if out := does(t, "file", "-b", dir+"/xtimer"); !strings.HasPrefix(out, says) {
			t.Errorf("darwin-%s: %s", processor, out)
		}
		if !strings.Contains(does(t, "go", "version", "-m", dir+"/xtimer"), "GOOS=darwin") {
			t.Errorf("darwin-%s: built for another system", processor)
		}
	}
}

// TestNotices: the archive carries the licence of each module that is linked.
func TestNotices(t *testing.T) {
	dir := unpacked(t, released(t, "-linux-amd64.tar.gz"))
	notices, err := os.ReadFile(dir + "/NOTICES")
	if err != nil {
		t.Fatal(err)
	}
	modules := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(v\S+)\t`).FindAllStringSubmatch(does(t, "go", "version", "-m", dir+"/xtimer"), -1)
	for _, m := range modules {
		if !strings.Contains(string(notices), "\n"+m[1]+" "+m[2]+" (") {
			t.Errorf("the licence of %s %s is missing", m[1], m[2])
		}
	}
	if len(modules) < 10 || !strings.Contains(string(notices), "\nGo (LICENSE)") || !strings.Contains(string(notices), "htmx") {
		t.Errorf("%d modules, %d bytes", len(modules), len(notices))
	}
}

// versionOf is the version in the names of the release.
func versionOf(t *testing.T) string {
	t.Helper()
	name := strings.TrimPrefix(filepath.Base(released(t, "-linux-amd64.tar.gz")), "xtimer-")
	return strings.TrimSuffix(name, "-linux-amd64.tar.gz")
}

// free is an address on loopback that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// starts runs a server until the end of the test; it must end with status 0 on SIGTERM.
func starts(t *testing.T, server *exec.Cmd) {
	t.Helper()
	server.Stdout, server.Stderr = os.Stderr, os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(time.Minute):
			_ = server.Process.Kill()
			t.Error("the server does not end on SIGTERM")
		}
	})
}

// fires waits for a server, creates a timer there and waits for its call.
func fires(t *testing.T, address, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for ready(ctx, address) != nil {
		select {
		case <-ctx.Done():
			t.Fatalf("the server on %s is not ready: %v", address, ready(t.Context(), address))
		case <-time.After(100 * time.Millisecond):
		}
	}
	called := make(chan string, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	receiver := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		select {
		case called <- q.Header.Get("X-Xtimer-Name"):
		default:
		}
	})}
	go receiver.Serve(l)
	defer receiver.Close()

	once := fmt.Sprintf("once-%d", time.Now().UnixNano()) // the data may be of an earlier server
	body := fmt.Sprintf(`{"app":"release","name":%q,"schedule":{"delay":"100ms"},"callback":{"url":"http://%s/"}}`, once, l.Addr())
	if code, answer := post(ctx, t, "http://"+address+"/v1/timers", token, body); code != http.StatusCreated {
		t.Fatalf("create = %d %s", code, answer)
	}
	select {
	case name := <-called:
		if name != once {
			t.Errorf("the call is of %q", name)
		}
	case <-ctx.Done():
		t.Fatal("no call arrived")
	}
}

func ready(ctx context.Context, address string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s %s", answer.Status, b)
	}
	return nil
}

func post(ctx context.Context, t *testing.T, url, token, body string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// TestComponents: the list names every module that is linked, with a licence each.
func TestComponents(t *testing.T) {
	b, err := os.ReadFile(released(t, "-linux-amd64.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct {
			Name, Version, PURL string
			Evidence            struct{ Licenses []any }
		}
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	with := map[string]bool{}
	for _, c := range list.Components {
		with[c.Name+" "+c.Version] = true
		if len(c.Evidence.Licenses) == 0 && c.Name != "std" {
			t.Errorf("%s has no licence", c.Name)
		}
	}
	dir := unpacked(t, released(t, "-linux-amd64.tar.gz"))
	for _, m := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(v\S+)\t`).FindAllStringSubmatch(does(t, "go", "version", "-m", dir+"/xtimer"), -1) {
		if !with[m[1]+" "+m[2]] {
			t.Errorf("%s %s is not in the list", m[1], m[2])
		}
	}
	if list.BOMFormat != "CycloneDX" || len(list.Components) < 10 {
		t.Errorf("%s with %d components", list.BOMFormat, len(list.Components))
	}
}
