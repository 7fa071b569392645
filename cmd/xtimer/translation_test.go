package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The guide is written in English, docs/*.md, and in Chinese, docs/zh/*.md. A page and its
// translation have the same headings, blocks, tables, and the same code, links and figures
// in each section: a change of one page alone fails here. So the blocks of the Chinese pages
// run as well, in TestGuide.
const (
	guideFolder   = "docs"
	chineseFolder = "docs/zh"
	// glossary is the page with the Chinese words; no English page belongs to it.
	glossary = chineseFolder + "/README.md"
)

// part is what stands under one heading of a page.
type part struct {
	heading string
	level   int
	blocks  []passage
	rows    []string // of tables
	text    string   // all else
}

// pageParts reads a page of the repository by its headings.
func pageParts(t *testing.T, page string) (all []part) {
	t.Helper()
	b, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	var block *passage
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		language, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		heading := strings.TrimLeft(line, "#")
		level := len(line) - len(heading)
		if block == nil && level > 0 && strings.HasPrefix(heading, " ") {
			all = append(all, part{heading: strings.TrimSpace(heading), level: level})
			continue
		}
		if len(all) == 0 {
			t.Fatalf("%s does not begin with a heading", page)
		}
		p := &all[len(all)-1]
		switch {
		case fence && block == nil:
			block = &passage{page, n, language, ""}
		case fence:
			p.blocks = append(p.blocks, *block)
			block = nil
		case block != nil:
			block.text += line
		case strings.HasPrefix(line, "|"):
			p.rows = append(p.rows, strings.TrimSpace(line))
		default:
			p.text += line
		}
	}
	if block != nil {
		t.Errorf("%s:%d: the block has no end", page, block.line)
	}
	return all
}

// guidePages are the names of the pages of a folder of the guide.
func guidePages(t *testing.T, folder string) (names []string) {
	t.Helper()
	pages, err := filepath.Glob("../../" + folder + "/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%s has no pages: %v", folder, err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); folder+"/"+name != glossary {
			names = append(names, name)
		}
	}
	return names
}

// TestGuideInChinese holds each Chinese page against the English one.
func TestGuideInChinese(t *testing.T) {
	english, chinese := guidePages(t, guideFolder), guidePages(t, chineseFolder)
	for _, name := range english {
		if !slices.Contains(chinese, name) {
			t.Errorf("%s/%s has no translation: write %s/%s", guideFolder, name, chineseFolder, name)
		}
	}
	for _, name := range chinese {
		if !slices.Contains(english, name) {
			t.Errorf("%s/%s translates no page", chineseFolder, name)
			continue
		}
		t.Run(name, func(t *testing.T) { samePage(t, path.Join(guideFolder, name), path.Join(chineseFolder, name)) })
	}
}

// samePage holds page c against page e.
func samePage(t *testing.T, e, c string) {
	english, chinese := pageParts(t, e), pageParts(t, c)
	for _, p := range chinese {
		if bad := notBold.FindString(p.text); bad != "" {
			t.Errorf("%s, %q: %q is not shown as an emphasis: end it before the punctuation", c, p.heading, bad)
		}
	}
	for i := range max(len(english), len(chinese)) {
		if i >= len(english) || i >= len(chinese) {
			t.Fatalf("%s has %d headings, %s has %d", e, len(english), c, len(chinese))
		}
		a, b := &english[i], &chinese[i]
		where := fmt.Sprintf("%s, %q, and %s, %q", e, a.heading, c, b.heading)
		if a.level != b.level {
			t.Fatalf("%s: one is a heading of level %d, the other of level %d", where, a.level, b.level)
		}
		for j := range max(len(a.blocks), len(b.blocks)) {
			if j >= len(a.blocks) || j >= len(b.blocks) {
				t.Errorf("%s: one has %d blocks, the other %d", where, len(a.blocks), len(b.blocks))
				break
			}
			sameBlock(t, &a.blocks[j], &b.blocks[j])
		}
		if len(a.rows) != len(b.rows) {
			t.Errorf("%s: one has %d rows of tables, the other %d", where, len(a.rows), len(b.rows))
		} else {
			for j, row := range a.rows {
				sameFacts(t, where+", row "+row, pageFacts(e, row), pageFacts(c, b.rows[j]))
			}
		}
		sameFacts(t, where, pageFacts(e, a.text), pageFacts(c, b.text))
	}
}

// sameBlock holds two blocks against each other. The labels of a picture are translated, so
// of a picture only the kind and the number of lines have to be the same.
func sameBlock(t *testing.T, a, b *passage) {
	t.Helper()
	where := fmt.Sprintf("%s:%d: the block differs from %s:%d", b.page, b.line, a.page, a.line)
	if a.language != b.language {
		t.Errorf("%s: it is of the kind %q, not %q", where, b.language, a.language)
		return
	}
	want, got := strings.Split(a.text, "\n"), strings.Split(b.text, "\n")
	if len(want) != len(got) {
		t.Errorf("%s: it has %d lines, not %d", where, len(got)-1, len(want)-1)
		return
	}
	for i := range want {
		if want[i] != got[i] && (a.language != "mermaid" || i == 0) {
			t.Errorf("%s: line %d is %q, not %q", where, i+1, got[i], want[i])
			return
		}
	}
}

// sameFacts names what only one of two texts has.
func sameFacts(t *testing.T, where string, a, b []string) {
	t.Helper()
	for _, fact := range a {
		if !slices.Contains(b, fact) {
			t.Errorf("%s: %s is only in English", where, fact)
		}
	}
	for _, fact := range b {
		if !slices.Contains(a, fact) {
			t.Errorf("%s: %s is only in Chinese", where, fact)
		}
	}
}

var (
	pageLink = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	// pageFact is what is the same in every language: code, and figures.
	pageFact = regexp.MustCompile("`[^`]+`|[0-9]+(?:[.,–:/-][0-9]+)*")
)

// pageFacts are the code, the links and the figures of a text of a page. A link to a Chinese
// page is as good as a link to its English page.
func pageFacts(page, text string) []string {
	var all []string
	for _, link := range pageLink.FindAllStringSubmatch(text, -1) {
		target := link[1]
		if !strings.Contains(target, "://") && target != "" {
			target = strings.Replace(path.Join(path.Dir(page), target), chineseFolder+"/", guideFolder+"/", 1)
		}
		all = append(all, "the link to "+target)
	}
	return append(all, pageFact.FindAllString(pageLink.ReplaceAllString(text, "]"), -1)...)
}

// TestGuideLinks: each link of the guide and of the READMEs leads to a file of the
// repository, and to a heading that the file has.
func TestGuideLinks(t *testing.T) {
	pages := []string{"README.md", "README.zh-CN.md", glossary}
	for _, folder := range []string{guideFolder, chineseFolder} {
		for _, name := range guidePages(t, folder) {
			pages = append(pages, folder+"/"+name)
		}
	}
	for _, page := range pages {
		for _, p := range pageParts(t, page) {
			for _, link := range pageLink.FindAllStringSubmatch(p.text+strings.Join(p.rows, "\n"), -1) {
				target := path.Join(path.Dir(page), link[1])
				switch {
				case strings.Contains(link[1], "://"):
					continue
				case link[1] == "":
					target = page
				}
				if _, err := os.Stat("../../" + target); err != nil {
					t.Errorf("%s, %q: %s does not exist", page, p.heading, link[0])
				} else if link[2] != "" && !slices.ContainsFunc(pageParts(t, target), func(to part) bool { return "#"+anchor(to.heading) == link[2] }) {
					t.Errorf("%s, %q: %s has no heading %s", page, p.heading, target, link[2])
				}
			}
		}
	}
}

// notBold is an emphasis that ends after a Chinese full stop and before a character: Markdown
// shows its asterisks.
var notBold = regexp.MustCompile(`\*[^*\n]+[。，；：！？）]\*+[\p{Han}A-Za-z0-9]`)

// anchor is the name that GitHub gives to a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}

// TestGlossary: each thing has one Chinese word, in the guide, the README and the console.
// The table of docs/zh/README.md has the word, and the words that are not to be used for it.
func TestGlossary(t *testing.T) {
	files := []string{"README.zh-CN.md", "httpapi/console/words/chinese.go", "httpapi/console/words/sentence.go"}
	for _, name := range guidePages(t, chineseFolder) {
		files = append(files, chineseFolder+"/"+name)
	}
	rules := 0
	for _, p := range pageParts(t, glossary) {
		for _, row := range p.rows[min(2, len(p.rows)):] {
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|"), "|")
			if len(cells) != 3 {
				t.Fatalf("%s: the row %s has not three cells", glossary, row)
			}
			word := strings.TrimSpace(cells[1])
			for other := range strings.SplitSeq(strings.TrimSpace(cells[2]), "、") {
				if other == "" {
					continue
				}
				rules++
				for _, file := range files {
					b, err := os.ReadFile("../../" + file)
					if err != nil {
						t.Fatal(err)
					}
					for n, line := range strings.Split(string(b), "\n") {
						if strings.Contains(line, other) {
							t.Errorf("%s:%d: %s for %s, write %s", file, n+1, other, strings.TrimSpace(cells[0]), word)
						}
					}
				}
			}
		}
	}
	if rules < 10 {
		t.Errorf("%s has only %d words that are not to be used", glossary, rules)
	}
}
