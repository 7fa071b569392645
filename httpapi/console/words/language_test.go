package words

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xtimer/engine"
	"xtimer/engine/change"
)

var (
	inPages = regexp.MustCompile(`\.T "((?:[^"\\]|\\.)*)"`)
	plurals = regexp.MustCompile(`\.N "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"`)
	inCode  = regexp.MustCompile(`(?:v\.T\(|&fault\{[^,]*, )"((?:[^"\\]|\\.)*)"`)
	verbs   = regexp.MustCompile(`%[a-z]`)
)

// TestBothLanguages: every text of the pages is in the table, every one of the
// table is used, and both fill in the same.
func TestBothLanguages(t *testing.T) {
	used := map[string]string{}
	find := func(files fs.FS, pattern string, re *regexp.Regexp) {
		names, err := fs.Glob(files, pattern)
		if err != nil || len(names) == 0 {
			t.Fatal("no files", pattern, err)
		}
		for _, name := range names {
			b, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range re.FindAllSubmatch(b, -1) {
				used[string(m[1])] = name
			}
		}
	}
	find(os.DirFS(".."), "pages/*.html", inPages)
	find(os.DirFS(".."), "*.go", inCode)
	find(os.DirFS(".."), "*/*.go", inCode)
	pages, err := filepath.Glob("../pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	// Of one and many, the table has what is said of many. No number stands before
	// a text that is for many only.
	many := regexp.MustCompile(`\.T "(?:[^"]* )?%[sd] [a-z]{3,}s\b`)
	for _, name := range pages {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range plurals.FindAllSubmatch(b, -1) {
			used[string(m[2])] = name
			if one, two := verbs.FindAllString(string(m[1]), -1), verbs.FindAllString(string(m[2]), -1); string(m[1]) == string(m[2]) || !slices.Equal(one, two) {
				t.Errorf("%s: %q and %q", name, m[1], m[2])
			}
		}
		if m := many.Find(b); m != nil {
			t.Errorf("%s: %q is wrong of one", name, m)
		}
	}
	for text, where := range used {
		zh, ok := chinese[text]
		if !ok {
			t.Errorf("%s: %q is not in the table", where, text)
		}
		if a, b := verbs.FindAllString(text, -1), verbs.FindAllString(zh, -1); strings.Join(a, "") != strings.Join(b, "") {
			t.Errorf("%q fills in %v, %q %v", text, a, zh, b)
		}
	}
	for text, zh := range chinese {
		if used[text] == "" {
			t.Errorf("nothing says %q", text)
		}
		if strings.TrimSpace(zh) == "" {
			t.Errorf("%q is empty", text)
		}
	}
	// No text stands in a page without going through the table.
	bare := regexp.MustCompile(`>[^<>{}]*[A-Za-z]{2,}[^<>{}]*<`)
	files, _ := filepath.Glob("../pages/*.html")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range bare.FindAllString(string(b), -1) {
			if words := strings.Trim(m, "<> \n·"); words != "" && !strings.Contains(" p50 p99 p99.9 UTC Go xtimer English Esc ", " "+words+" ") {
				t.Errorf("%s: %q is not in the table", f, words)
			}
		}
	}
}

// TestWords: every word of the engine that a page shows is known.
func TestWords(t *testing.T) {
	words := []string{
		engine.ReasonOverlap, engine.ReasonMisfire, engine.ReasonWindow, engine.ReasonReplaced, engine.ReasonDisabled, engine.ReasonDeleted,
		engine.ReasonQueueFull, engine.ReasonAttempts, engine.ReasonAge, engine.ReasonRejected, engine.ReasonMayHaveBeen, engine.ReasonCrashed,
		"timeout", "refused", "dns", "tls", "egress_denied", "reset", "protocol", "too_large", "status", "journal", "panic",
		"read", "write", "admin", "cold", "warm",
	}
	for s := engine.Waiting; s <= engine.Unknown; s++ {
		words = append(words, s.String())
	}
	for o := engine.FromSchedule; o <= engine.FromCatchUp; o++ {
		words = append(words, o.String())
	}
	for i := range 3 {
		words = append(words, engine.Status(i).String(), engine.MisfirePolicy(i).String(), engine.Overlap(i).String(), engine.Delivery(i%2).String())
	}
	for a := change.EnableAll; a <= change.RedriveAll; a++ {
		words = append(words, a.String())
	}
	for _, w := range words {
		if chineseWords[w] == "" {
			t.Errorf("%q has no Chinese word", w)
		}
	}
}
