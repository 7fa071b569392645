package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// guideSecret signs what the guide's server calls for the app shop.
const guideSecret = "whsec_dHdlbnR5LWZvdXIgYnl0ZXMgb3IgbW9yZQ=="

// passage is a piece of a page between ``` fences.
type passage struct {
	page     string
	line     int
	language string
	text     string
}

// guideBlocks are all blocks of the guide and of the READMEs, by page.
func guideBlocks(t *testing.T) map[string][]passage {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("there is no guide: %v", err)
	}
	pages = append(pages, "../../README.md", "../../README.zh-CN.md")
	all := map[string][]passage{}
	for _, page := range pages {
		f, err := os.Open(page)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		name := filepath.Base(page)
		var b *passage
		n := 0
		for sc := bufio.NewScanner(f); sc.Scan(); {
			n++
			language, fence := strings.CutPrefix(sc.Text(), "```")
			switch {
			case !fence && b != nil:
				b.text += sc.Text() + "\n"
			case fence && b == nil:
				b = &passage{name, n, language, ""}
			case fence:
				all[name] = append(all[name], *b)
				b = nil
			}
		}
		if b != nil {
			t.Errorf("%s:%d: the block has no end", name, b.line)
		}
	}
	return all
}

// blockOf is the one block of a page in a language that has the text.
func blockOf(t *testing.T, page, language, text string) string {
	t.Helper()
	for _, b := range guideBlocks(t)[page] {
		if b.language == language && strings.Contains(b.text, text) {
			return b.text
		}
	}
	t.Fatalf("%s has no block of %s with %q", page, language, text)
	return ""
}

// TestGuide runs every sh block of the guide and of the READMEs, those of a page in
// their order in one folder, against a server and a receiver of its own: a page
// promises that what it says can be pasted. What needs root, systemd, Docker or a database is
// a block of another kind and not run.
func TestGuide(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{
		"sh": true, "console": true, "text": true, "json": true, "yaml": true,
		"go": true, "python": true, "js": true, "java": true, "php": true, "sql": true, "mermaid": true,
	}
	for page, blocks := range guideBlocks(t) {
		var script strings.Builder
		for _, b := range blocks {
			if !kinds[b.language] {
				t.Errorf("%s:%d: %q is no kind of block that the guide has", page, b.line, b.language)
			}
			if b.language == "sh" {
				fmt.Fprintf(&script, ": %s:%d\n%s", page, b.line, b.text)
			}
		}
		if script.Len() == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runPages(t, script.String())
		})
	}
}

// TestGuideInOrder runs all pages, one after the other as a reader would, against one server:
// no page takes the names of another.
func TestGuideInOrder(t *testing.T) {
	t.Parallel()
	blocks := guideBlocks(t)
	order := []string{
		"README.md", "start.md", "schedules.md", "delivery.md", "batches.md", "promises.md", "running.md", "mysql-redis.md", "cluster.md", "console.md", "cli.md", "api.md", "coming-from.md", "figures.md", "README.zh-CN.md",
	}
	var script strings.Builder
	for _, page := range order {
		for _, b := range blocks[page] {
			if b.language == "sh" {
				fmt.Fprintf(&script, ": %s:%d\n%s", page, b.line, b.text)
			}
		}
		delete(blocks, page)
	}
	for page := range blocks {
		t.Errorf("%s has no place in the order of the guide", page)
	}
	runPages(t, script.String())
}

func runPages(t *testing.T, script string) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	}))
	defer receiver.Close()
	s := serves(t, "--data-dir", t.TempDir(), "--backup-dir", t.TempDir())
	script = strings.NewReplacer(
		"http://127.0.0.1:8080", s.url,
		"http://127.0.0.1:9000", receiver.URL,
		"seq 100000", "seq 2000", // beside the others, all pages that follow took minutes
	).Replace(script)

	name, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // all pages in order, on a busy machine
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ex")
	cmd.Stdin = strings.NewReader(script)
	cmd.Dir = t.TempDir()
	// curl takes an answer of 400 and more for success, unless it is told here.
	curl := t.TempDir()
	if err := os.WriteFile(filepath.Join(curl, ".curlrc"), []byte("fail-with-body\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "CURL_HOME="+curl, "XTIMER_SERVER="+s.url,
		"PATH="+filepath.Dir(name)+":"+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}

// signedCall is a call as a server signs it.
type signedCall struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"` // by their lower-case names
	Body    string            `json:"body"`
}

// aSignedCall has a server make one.
func aSignedCall(t *testing.T) signedCall {
	t.Helper()
	calls := make(chan signedCall, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c := signedCall{guideSecret, map[string]string{}, string(body)}
		for name := range r.Header {
			c.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		select {
		case calls <- c:
		default:
		}
	}))
	defer receiver.Close()
	config := filepath.Join(t.TempDir(), "xtimer.yaml")
	if err := os.WriteFile(config, []byte("apps: {shop: {webhook_secrets: ["+guideSecret+"]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serves(t, "--data-dir", t.TempDir(), "--config", config)
	s.post("/v1/timers", map[string]any{
		"app": "shop", "name": "signed", "schedule": map[string]any{"delay": "10ms"},
		"callback": map[string]any{"url": receiver.URL, "body": map[string]any{"order": 1842, "note": "Grüße"}},
	}, nil)
	select {
	case c := <-calls:
		return c
	case <-time.After(time.Minute):
		t.Fatal("the server did not call")
		return signedCall{}
	}
}

// TestGuideSignatures holds the guide's snippets that verify a signature against
// calls that a server has signed, and against forged ones, in each language
// whose runtime is here.
func TestGuideSignatures(t *testing.T) {
	// Each asks its snippet's function about the calls on stdin, and prints the answers.
	languages := []struct {
		language, runtime, file, before, after string
	}{
		{"python", "python3", "verify.py", "", `
import json, sys
print(json.dumps([verify(c["secret"], c["headers"], c["body"].encode()) for c in json.load(sys.stdin)]))
`},
		{"js", "node", "verify.js", "", `
const calls = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(calls.map((c) => verify(c.secret, c.headers, Buffer.from(c.body)))));
`},
		{"php", "php", "verify.php", "<?php\n", `
$answers = array_map(fn($c) => verify($c['secret'], $c['headers'], $c['body']), json_decode(file_get_contents('php://stdin'), true));
echo json_encode($answers);
`},
	}
	good := aSignedCall(t)
	calls := []signedCall{good, good, good, good, good}
	calls[1].Body += " "
	calls[2].Secret = "whsec_dHdlbnR5LWZvdXIgYnl0ZXMgb3IgbW90ZQ=="
	calls[3].Headers = map[string]string{}
	calls[4].Headers = map[string]string{
		"webhook-id": good.Headers["webhook-id"], "webhook-timestamp": "1763658000",
		"webhook-signature": good.Headers["webhook-signature"],
	}
	const want = "[true,false,false,false,false]"
	stdin, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range languages {
		t.Run(l.language, func(t *testing.T) {
			snippet := blockOf(t, "delivery.md", l.language, "webhook-signature")
			path, err := exec.LookPath(l.runtime)
			if err != nil {
				t.Skipf("%s is not here", l.runtime)
			}
			file := filepath.Join(t.TempDir(), l.file)
			if err := os.WriteFile(file, []byte(l.before+snippet+l.after), 0o600); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(outputOf(t, bytes.NewReader(stdin), path, file), " ", "")
			if strings.TrimSpace(got) != want {
				t.Errorf("the snippet says %s, not %s", got, want)
			}
		})
	}
	t.Run("java", func(t *testing.T) {
		snippet := blockOf(t, "delivery.md", "java", "webhook-signature")
		path, err := exec.LookPath("java")
		if err != nil {
			t.Skip("java is not here")
		}
		if _, err := exec.LookPath("javac"); err != nil {
			t.Skip("java is here, its compiler is not")
		}
		file := filepath.Join(t.TempDir(), "Main.java")
		// Java has no JSON of its own: the calls come as arguments.
		snippet = strings.Replace(snippet, "class Webhook {", `class Webhook {
    public static void main(String[] a) {
        var answers = new java.util.ArrayList<Boolean>();
        for (int i = 0; i < a.length; i += 5) {
            Map<String, String> h = a[i + 1].isEmpty() ? Map.of()
                : Map.of("webhook-id", a[i + 1], "webhook-timestamp", a[i + 2], "webhook-signature", a[i + 3]);
            answers.add(verify(a[i], h, java.util.HexFormat.of().parseHex(a[i + 4])));
        }
        System.out.println(answers);
    }
`, 1)
		if err := os.WriteFile(file, []byte(snippet), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{file}
		for _, c := range calls {
			args = append(args, c.Secret, c.Headers["webhook-id"], c.Headers["webhook-timestamp"], c.Headers["webhook-signature"], hex.EncodeToString([]byte(c.Body)))
		}
		got := strings.ReplaceAll(outputOf(t, nil, path, args...), " ", "")
		if strings.TrimSpace(got) != want {
			t.Errorf("the snippet says %s, not %s", got, want)
		}
	})
	t.Run("go", func(t *testing.T) {
		// Built as if it were a package of this module.
		dir := t.TempDir()
		file := filepath.Join(dir, "main.go")
		if err := os.WriteFile(file, []byte(blockOf(t, "delivery.md", "go", "client.NewReceiver")), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := filepath.Abs("../..")
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "guide", "main.go"): file}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "receiver"), "./guide")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// outputOf runs a program to its end and returns what it prints.
func outputOf(t *testing.T, stdin io.Reader, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = stdin
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, stderr.String())
	}
	return string(out)
}
