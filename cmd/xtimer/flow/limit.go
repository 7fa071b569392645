package flow

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/span"
	api "xtimer/httpapi/client"
)

// limiting is the flags of a limit.
type limiting struct {
	api.FlowLimit
	per span.Value
}

func (l *limiting) limit() api.FlowLimit {
	l.Per = api.Duration(l.per)
	return l.FlowLimit
}

func (l *limiting) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVar(&l.Rate, "rate", 0, "the largest `NUMBER` of calls in any window of --per")
	fs.Var(&l.per, "per", "the window of --rate, 1s to 24h (default 1s)")
	fs.IntVar(&l.Burst, "burst", 0, "the `NUMBER` of calls that may go at once (default 1: evenly spaced)")
	fs.IntVar(&l.Concurrency, "concurrency", 0, "the largest `NUMBER` of calls in flight")
	fs.StringVar(&l.Hold, "hold", "", "until when a task keeps its place in --concurrency: the end of the `call`, or task: its final status (default call)")
	fs.BoolVar(&l.Cooldown, "cooldown", false, "hold calls for the time of Retry-After after a response 429 or 503")
	fs.Var((*breaking)(&l.FlowLimit), "breaker", "hold calls while many of them fail: `SETTINGS` such as share=0.5,of=20,within=30s,open=30s,max_open=5m, which are the defaults")
}

// breaking is the flag of the breaker of a limit.
type breaking api.FlowLimit

func (v *breaking) String() string { return "" }

func (v *breaking) Type() string { return "settings" }

func (v *breaking) Set(s string) error {
	b := &api.Breaker{}
	for _, setting := range strings.Split(s, ",") {
		name, value, _ := strings.Cut(setting, "=")
		var err error
		switch name {
		case "share":
			b.Share, err = strconv.ParseFloat(value, 64)
		case "of":
			b.Of, err = strconv.Atoi(value)
		case "within":
			err = (*span.Value)(&b.Within).Set(value)
		case "open":
			err = (*span.Value)(&b.Open).Set(value)
		case "max_open":
			err = (*span.Value)(&b.MaxOpen).Set(value)
		default:
			err = errors.New("the settings are share, of, within, open, max_open")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
	}
	v.Breaker = b
	return nil
}

func limitWords(l *api.FlowLimit) string {
	var words []string
	if l.Rate > 0 {
		words = append(words, fmt.Sprintf("%d per %s", l.Rate, span.Format(time.Duration(l.Per))))
	}
	if l.Burst > 1 {
		words = append(words, fmt.Sprintf("bursts of %d", l.Burst))
	}
	if l.Concurrency > 0 {
		words = append(words, fmt.Sprintf("%d at a time", l.Concurrency))
	}
	if l.Hold == "task" {
		words = append(words, "held by the task")
	}
	if l.Cooldown {
		words = append(words, "cooldown")
	}
	if l.Breaker != nil {
		words = append(words, fmt.Sprintf("breaker at %g%% of %d", l.Breaker.Share*100, l.Breaker.Of))
	}
	return strings.Join(words, ", ")
}
