package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// order is what a host is told, and report what it answers: JSON over its
// standard input and output, one after the other.
type order struct {
	Tasks tasks `json:"tasks"`
	Batch bool  `json:"batch"` // in batches of a thousand
	// Within bounds the time, ns; what is not added by then is not.
	Within time.Duration `json:"within"`
	// Heard asks for what the no-op handler heard, instead.
	Heard bool `json:"heard"`
}

type orderReport struct {
	Added int           `json:"added"` // the first so many tasks
	Took  time.Duration `json:"took"`
	Heard []arrival     `json:"heard,omitempty"`
	Error string        `json:"error,omitempty"`
}

// tasks are N numbers from First on, evenly due over Over from Start (Unix ms).
type tasks struct {
	First, N int
	Start    int64
	Over     time.Duration
}

func (ts tasks) at(i int) task {
	over := float64(ts.Over.Milliseconds()) * float64(i) / float64(ts.N)
	return task{Number: ts.First + i, Due: ts.Start + int64(over)}
}

// arrival of one task at its handler, or at the receiver.
type arrival struct {
	Task task  `json:"t"`
	At   int64 `json:"a"` // Unix ns
}

func (a arrival) late() time.Duration {
	return time.Unix(0, a.At).Sub(time.UnixMilli(a.Task.Due))
}

const batchSize = 1000

// host runs one peer until its input ends. XTIMER_PEERS_STORE is the server
// behind it, XTIMER_PEERS_RECEIVER what its handler calls.
func host(name string) {
	var s setup
	for _, x := range setups {
		if x.name == name {
			s = x
		}
	}
	heard := &heard{}
	fire := heard.note
	if !s.noop {
		fire = caller(os.Getenv(receiverEnv))
	}
	p, err := openPeer(s, os.Getenv(storeEnv), fire)
	if err != nil {
		fmt.Fprintf(os.Stderr, "peers: cannot open %s: %v\n", name, err)
		os.Exit(1)
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	_ = out.Encode(orderReport{}) // ready
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic("BUG: " + err.Error())
		}
		if o.Heard {
			_ = out.Encode(orderReport{Heard: heard.take()})
			continue
		}
		_ = out.Encode(p.obey(o))
	}
}

// obey adds tasks, by as many writers as the peer has.
func (p *peer) obey(o order) orderReport {
	step := 1
	if o.Batch {
		step = batchSize
	}
	started := time.Now()
	added, err := share(o.Tasks.N, step, p.writers, started.Add(o.Within), func(from, to int) error {
		if !o.Batch {
			return p.add(o.Tasks.at(from))
		}
		ts := make([]task, 0, to-from)
		for i := from; i < to; i++ {
			ts = append(ts, o.Tasks.at(i))
		}
		return p.addMany(ts)
	})
	r := orderReport{Added: added, Took: time.Since(started)}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// share has do called for [0, n) in steps, by so many goroutines, until end; it
// tells how many of the first were done.
func share(n, step, writers int, end time.Time, do func(from, to int) error) (int, error) {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for time.Now().Before(end) && failed.Load() == nil {
				from := int(next.Add(int64(step))) - step
				if from >= n {
					return
				}
				if err := do(from, min(from+step, n)); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return min(int(next.Load()), n), nil
}

// heard is what a no-op handler notes.
type heard struct {
	mu sync.Mutex
	as []arrival
}

func (h *heard) note(t task) {
	now := time.Now().UnixNano()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.as = append(h.as, arrival{t, now})
}

func (h *heard) take() []arrival {
	h.mu.Lock()
	defer h.mu.Unlock()
	as := h.as
	h.as = nil
	return as
}
