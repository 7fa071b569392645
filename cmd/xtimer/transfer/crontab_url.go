package transfer

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"text/template"

	"xtimer/cmd/xtimer/exit"
)

// commandURLs tells the URL that takes the place of a command.
type commandURLs struct {
	prefixes []commandURL
	other    *template.Template // nil: none
}

type commandURL struct {
	prefix string
	url    *template.Template
}

// newCommandURLs reads the template, and the map from a file; either may be "".
func newCommandURLs(url, file string) (u *commandURLs, err error) {
	u = &commandURLs{}
	if url == "" && file == "" {
		return nil, exit.Usage("give --command-url or --map, to name the URL that replaces a command")
	}
	if url != "" {
		if u.other, err = parseURL(url); err != nil {
			return nil, exit.Usage("--command-url: %w", err)
		}
	}
	if file == "" {
		return u, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, exit.Usage("--map: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		// A template may have blanks in {{ }}, and a prefix may have some too: the
		// URL begins at the last word that looks like one.
		at := max(strings.LastIndex(text, " http"), strings.LastIndex(text, "\thttp"))
		if at < 0 {
			return nil, exit.Usage("--map: %s:%d: the line is not PREFIX URL", file, n)
		}
		t, err := parseURL(strings.TrimSpace(text[at:]))
		if err != nil {
			return nil, exit.Usage("--map: %s:%d: %w", file, n, err)
		}
		u.prefixes = append(u.prefixes, commandURL{strings.TrimSpace(text[:at]), t})
	}
	if err := lines.Err(); err != nil {
		return nil, exit.Usage("--map: %w", err)
	}
	return u, nil
}

// parseURL reads a template, and tries it: a wrong field is one for all lines.
func parseURL(url string) (*template.Template, error) {
	t, err := template.New("url").Option("missingkey=error").Parse(url)
	if err != nil {
		return nil, err
	}
	return t, t.Execute(&strings.Builder{}, &crontabEntry{})
}

// of is the URL of an entry.
func (u *commandURLs) of(e *crontabEntry) (string, error) {
	t, longest := u.other, -1
	for _, p := range u.prefixes {
		if strings.HasPrefix(e.Command, p.prefix) && len(p.prefix) > longest {
			t, longest = p.url, len(p.prefix)
		}
	}
	if t == nil {
		return "", fmt.Errorf("no prefix in --map matches the command %q", e.Command)
	}
	var b strings.Builder
	if err := t.Execute(&b, e); err != nil {
		return "", fmt.Errorf("cannot make the URL of %q: %w", e.Command, err)
	}
	return b.String(), nil
}
