package transfer

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

// crontabFlags say how a crontab is read.
type crontabFlags struct {
	file        string // "-": stdin
	url, urlMap string
	system      bool
	app         string
}

// crontabEntry is a line of a crontab that runs a command.
type crontabEntry struct {
	Schedule string // five fields, or a shorthand
	User     string // of a system crontab
	Command  string
	Stdin    string // what stands after the first %
}

// reader reads the entries of a crontab as timers.
func (c *crontabFlags) reader(stdin io.Reader, zone string) (reader, error) {
	urls, err := newCommandURLs(c.url, c.urlMap)
	if err != nil {
		return nil, err
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return nil, exit.Usage("--time-zone: %w", err)
	}
	return func(ctx context.Context, yield func(*item) error) error {
		in := stdin
		if c.file != "-" {
			f, err := os.Open(c.file)
			if err != nil {
				return exit.With(exit.StatusUsage, err)
			}
			defer f.Close()
			in = f
		}
		return c.items(in, zone, urls, yield)
	}, nil
}

func (c *crontabFlags) items(in io.Reader, zone string, urls *commandURLs, yield func(*item) error) error {
	lines := bufio.NewScanner(in)
	same := map[string]int{} // how often a name was given
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		if name, value, ok := assignment(text); ok {
			if name == "CRON_TZ" {
				zone = value
			}
			continue
		}
		i := &item{at: fmt.Sprintf("line %d", n)}
		e, err := c.entry(text)
		if err == nil {
			i.App, i.Name = c.app, e.name()
			if same[i.Name]++; same[i.Name] > 1 {
				i.Name = fmt.Sprintf("%s-%d", i.Name, same[i.Name])
			}
			err = i.fromEntry(e, zone, urls)
		}
		if err != nil {
			i.fail(err)
		}
		if err := yield(i); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read the crontab: %w", err)
	}
	return nil
}

// assignment reads a line of environment: NAME = value, either in quotes.
func assignment(text string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(text, "=")
	if name = unquote(name); !ok || name == "" || strings.ContainsAny(name, " \t*@/,") || name[0] >= '0' && name[0] <= '9' {
		return "", "", false
	}
	return name, unquote(value), true
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// entry takes a line apart.
func (c *crontabFlags) entry(text string) (e crontabEntry, err error) {
	// A minus before it keeps cron from logging it.
	rest := strings.TrimPrefix(text, "-")
	fields := 5
	if strings.HasPrefix(rest, "@") {
		fields = 1
	}
	var schedule []string
	for range fields {
		var f string
		if f, rest = firstWord(rest); rest == "" {
			return e, fmt.Errorf("%q is not a crontab entry: the command is missing", text)
		}
		if len(strings.Fields(f)) != 1 {
			return e, fmt.Errorf("%q is not a crontab entry: only blanks and tabs may separate its fields", text)
		}
		schedule = append(schedule, f)
	}
	e.Schedule = strings.Join(schedule, " ")
	if c.system {
		if e.User, rest = firstWord(rest); rest == "" {
			return e, fmt.Errorf("%q is not an entry of a system crontab: it has no command after the user", text)
		}
	}
	e.Command, e.Stdin = splitPercent(rest)
	return e, checkDays(schedule)
}

// firstWord cuts the first word off.
func firstWord(s string) (first, rest string) {
	n := strings.IndexAny(s, " \t")
	if n < 0 {
		return s, ""
	}
	return s[:n], strings.TrimLeft(s[n:], " \t")
}

// splitPercent splits off what cron gives to the command's standard input: all
// after the first %, where further ones begin lines; \% is a plain one.
func splitPercent(s string) (command, stdin string) {
	var b strings.Builder
	isStdin := false
	for n := 0; n < len(s); n++ {
		switch {
		case s[n] == '\\' && n+1 < len(s) && s[n+1] == '%':
			b.WriteByte('%')
			n++
		case s[n] == '%' && !isStdin:
			command, isStdin = b.String(), true
			b.Reset()
		case s[n] == '%':
			b.WriteByte('\n')
		default:
			b.WriteByte(s[n])
		}
	}
	if !isStdin {
		return strings.TrimSpace(b.String()), ""
	}
	return strings.TrimSpace(command), b.String() + "\n"
}

// checkDays refuses what cron takes otherwise. Where day-of-month and
// day-of-week are both given, either counts, here as there; but of one that
// begins with * cron wants both.
func checkDays(schedule []string) error {
	if len(schedule) == 1 {
		if strings.EqualFold(schedule[0], "@reboot") {
			return fmt.Errorf("@reboot does not name a time")
		}
		return nil
	}
	dom, dow := schedule[2], schedule[4]
	if dom != "*" && dow != "*" && (dom[0] == '*' || dow[0] == '*') {
		return fmt.Errorf("cron runs the command on days that match both %q of the month and %q of the week; a timer is due on days that match either", dom, dow)
	}
	return nil
}

// name is the same for the same command of the same user, whatever line it
// stands in: words to read, and a hash to tell it from others.
func (e *crontabEntry) name() string {
	const words = 48 // bytes
	var b strings.Builder
	for _, r := range e.Command {
		if b.Len() >= words {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	sum := sha256.Sum256([]byte(e.User + "\x00" + e.Command + "\x00" + e.Stdin))
	return fmt.Sprintf("%s-%x", cmp.Or(strings.Trim(b.String(), "-."), "command"), sum[:4])
}

func (i *item) fromEntry(e crontabEntry, zone string, urls *commandURLs) (err error) {
	i.Schedule = api.Schedule{Cron: e.Schedule, TimeZone: zone}
	if i.Callback.URL, err = urls.of(&e); err != nil {
		return err
	}
	if e.Stdin != "" {
		i.Callback.BodyText = &e.Stdin
	}
	if e.User != "" {
		i.Labels = map[string]string{"user": e.User}
	}
	return nil
}
