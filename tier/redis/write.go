package redis

import (
	"context"
	"errors"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// perCall is how many entries one script takes, and perPipe one pipeline:
	// Redis does nothing else during the former, and the latter has to be
	// answered within half of the patience, two of them in turn, also by a machine
	// that is ten times too busy (1,000 take about 15 ms of CPU, see DESIGN.md).
	perCall = 500
	perPipe = 1000
	// pipes of one caller under way at a time: one is made while Redis works on
	// the other.
	pipes = 2
)

// change is something that is written to one shard by a script. Its methods are
// called with the shard locked.
type change interface {
	// build makes keys and arguments from what is known of the shard now; the
	// manifest and the guard come before them. ok is false when there is nothing
	// to do any more.
	build() (script *goredis.Script, keys []string, args []any, ok bool)
	// adopt takes over what the script told after "ok".
	adopt(reply []any)
	// fail follows when it was not made. sent: it may have been.
	fail(sent bool)
}

// call is one change on its way.
type call struct {
	change
	sh   *shard
	size int

	script *goredis.Script
	next   int64 // the number of the write; 0: not built yet
	run    string
	keys   []string
	args   []any
}

func (c *call) prepare() (ok bool) {
	script, keys, args, ok := c.build()
	if !ok {
		return false
	}
	sh := c.sh
	run, lo := sh.run, sh.acked
	if run == "" {
		run, lo, sh.acked, sh.sent = sh.token(), -1, 0, 0
	}
	hi := sh.sent
	sh.sent++
	c.script, c.run, c.next = script, run, sh.sent
	c.keys = append([]string{manifestKey(sh.n)}, keys...)
	c.args = append([]any{run, lo, hi, c.next, secondsLeft(sh.until), time.Now().UnixMilli()}, args...)
	return true
}

// write makes changes in pipelines, of which each has a shard once. The first
// error ends it.
func (w *Warm) write(ctx context.Context, calls []*call) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error // guarded by mu
		slots = make(chan struct{}, pipes)
	)
	for len(calls) > 0 {
		n, size := 0, 0
		for n < len(calls) && size < perPipe && (n == 0 || calls[n].sh.n > calls[n-1].sh.n) {
			size += calls[n].size
			n++
		}
		part := calls[:n]
		calls = calls[n:]
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			mu.Lock()
			err := first
			mu.Unlock()
			if err == nil {
				err = ctx.Err()
			}
			if err = w.writePipe(ctx, part, err); err != nil {
				mu.Lock()
				first = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return first
}

// errLost ends what would go on for ever.
var errLost = errors.New("a shard was lost again and again; does another process write this database?")

// writePipe makes calls of different shards, in the order of their numbers. One
// whose reply was lost is repeated once; one that finds its shard lost takes it
// over. With an error to begin with, all of them fail of it.
func (w *Warm) writePipe(ctx context.Context, calls []*call, err error) error {
	for _, c := range calls {
		c.sh.mu.Lock()
		defer c.sh.mu.Unlock()
	}
	// What has begun is not cut short: its outcome would not be known.
	ctx = context.WithoutCancel(ctx)
	open := calls
	for try := 0; err == nil && len(open) > 0; try++ {
		if err = w.outage.refusal(); err != nil {
			break
		}
		if try == 3 {
			err = errLost
			break
		}
		var failed error
		open, failed = w.send(ctx, open)
		switch {
		case failed == nil:
		case !isSilence(failed):
			err = failed // it was answered: asking again helps nothing
		case try > 0:
			w.outage.begin()
			err = failed
		}
	}
	for _, c := range open {
		c.fail(c.next != 0)
	}
	if len(open) == 0 {
		return nil
	}
	return unavailable(err)
}

// send tries calls once and returns those that are still to be made.
func (w *Warm) send(ctx context.Context, calls []*call) (open []*call, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience/2)
	defer cancel()
	writes := w.clients.Load().writes
	pipe := writes.Pipeline()
	var sent []*call
	var cmds []*goredis.Cmd
	for _, c := range calls {
		if c.next == 0 && !c.prepare() {
			continue
		}
		sent = append(sent, c)
		cmds = append(cmds, c.script.EvalSha(ctx, pipe, c.keys, c.args...))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, c := range sent {
		if goredis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			cmds[i] = c.script.Run(ctx, writes, c.keys, c.args...)
		}
		reply, failed := cmds[i].Slice()
		switch {
		case failed != nil:
			open, err = append(open, c), failed
		case reply[0] == "lost":
			w.lose(c.sh)
			c.next = 0
			open = append(open, c)
		default:
			c.sh.run, c.sh.acked, c.sh.sent = c.run, c.next, c.next
			c.adopt(reply[1:])
		}
	}
	return open, err
}

// unlink removes what was dropped. It expires in any case.
func (w *Warm) unlink(ctx context.Context, ds []dropped) error {
	if len(ds) == 0 {
		return nil
	}
	if err := w.outage.refusal(); err != nil {
		return unavailable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	_, err := w.clients.Load().writes.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, d := range ds {
			p.Unlink(ctx, d.keys...)
			if len(d.fields) > 0 {
				p.HDel(ctx, manifestKey(d.shard), d.fields...)
			}
		}
		return nil
	})
	if err == nil {
		return nil
	}
	if isSilence(err) {
		w.outage.begin()
	}
	return unavailable(err)
}
