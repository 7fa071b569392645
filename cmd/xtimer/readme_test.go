package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// section is what stands under a heading of a README.
type section struct {
	heading string
	blocks  []string // lines from ``` to ```, without comments
	rows    []string // of tables
	text    string   // all else
}

var (
	readmeFence   = regexp.MustCompile("^```")
	readmeHeading = regexp.MustCompile(`^#+ `)
	// readmeComment is what follows two spaces: in a block, what people read.
	readmeComment = regexp.MustCompile(`  .*`)
	// readmeFact is what stays the same in every language: code, links, figures.
	readmeFact = regexp.MustCompile("`[^`]+`|\\]\\([^)]+\\)|[0-9]+(?:[.,–:/-][0-9]+)*")
	readmeSelf = regexp.MustCompile(`^\]\(README.*\.md\)$`)
)

func readme(t *testing.T, name string) (all []section) {
	t.Helper()
	b, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	fenced := false
	for line := range strings.Lines(string(b)) {
		if readmeHeading.MatchString(line) && !fenced {
			all = append(all, section{heading: strings.TrimSpace(line)})
			continue
		}
		if len(all) == 0 {
			t.Fatalf("%s does not begin with a heading", name)
		}
		s := &all[len(all)-1]
		switch {
		case readmeFence.MatchString(line):
			fenced = !fenced
			s.blocks = append(s.blocks, strings.TrimSpace(line))
		case fenced:
			s.blocks = append(s.blocks, strings.TrimSpace(readmeComment.ReplaceAllString(line, "")))
		case strings.HasPrefix(line, "|"):
			s.rows = append(s.rows, strings.TrimSpace(line))
		case strings.HasPrefix(line, "    "):
			t.Errorf("%s: a block without a fence is not run: %s", name, line)
		default:
			s.text += line
		}
	}
	return all
}

// TestReadmesSayTheSame holds the Chinese README against the English one: the
// headings, the blocks, and the code, the links and the figures of each row of a
// table and of each section's text. The words are for people to compare.
func TestReadmesSayTheSame(t *testing.T) {
	const a, b = "README.md", "README.zh-CN.md"
	english, chinese := readme(t, a), readme(t, b)
	for i := range max(len(english), len(chinese)) {
		if i >= len(english) || i >= len(chinese) {
			t.Fatalf("%s has %d headings, %s has %d", a, len(english), b, len(chinese))
		}
		e, c := &english[i], &chinese[i]
		if strings.IndexByte(e.heading, ' ') != strings.IndexByte(c.heading, ' ') {
			t.Fatalf("%s has the heading %q where %s has %q", a, e.heading, b, c.heading)
		}
		agree(t, e.heading+": blocks", e.blocks, c.blocks)
		agree(t, e.heading, facts(e.text), facts(c.text))
		if len(e.rows) != len(c.rows) {
			t.Errorf("%s: %d rows of tables in %s, %d in %s", e.heading, len(e.rows), a, len(c.rows), b)
			agree(t, e.heading+", rows", factsOf(e.rows), factsOf(c.rows))
			continue
		}
		for j, row := range e.rows {
			agree(t, fmt.Sprintf("%s, row %q", e.heading, row), facts(row), facts(c.rows[j]))
		}
	}
}

// facts are sorted, for languages have their own order of words. A link to a Chinese page is as
// good as a link to its English page.
func facts(text string) []string {
	text = strings.ReplaceAll(text, "]("+chineseFolder+"/", "]("+guideFolder+"/")
	all := readmeFact.FindAllString(text, -1)
	all = slices.DeleteFunc(all, readmeSelf.MatchString)
	slices.Sort(all)
	return all
}

func factsOf(rows []string) (all []string) {
	for _, r := range rows {
		all = append(all, strings.Join(facts(r), " "))
	}
	return all
}

// agree names what only one of the two has.
func agree(t *testing.T, where string, english, chinese []string) {
	t.Helper()
	only := func(of, other []string) (left []string) {
		other = slices.Clone(other)
		for _, s := range of {
			if i := slices.Index(other, s); i >= 0 {
				other = slices.Delete(other, i, i+1)
			} else {
				left = append(left, s)
			}
		}
		return left
	}
	if e, c := only(english, chinese), only(chinese, english); len(e)+len(c) > 0 {
		t.Errorf("%s: only in README.md: %q; only in README.zh-CN.md: %q", where, e, c)
	}
}
