package console

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"time"

	"xtimer/httpapi/client"
)

// work is something that takes longer than a page: done in the background, with
// the visitor's token, and watched at /work/{id}. It ends with the process; what
// it has done stays done.
type work struct {
	Title, Back string
	Total       int
	gone        string // what a 404 means here, in the visitor's language

	session string
	stop    context.CancelFunc
	mu      sync.Mutex // guards all below
	done    int
	failed  int
	err     string // the first
	ended   bool
	stopped bool
	server  bool // the API goes on by itself: it cannot be stopped here
}

// worksKept bounds the works that can still be looked at.
const worksKept = 200

type works struct {
	mu    sync.Mutex
	byID  map[string]*work
	order []string
}

// start begins a work, and sends the visitor to watch it.
func (v *visit) start(w *work, do func(context.Context) error) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(v.r.Context()))
	w.session, w.stop = v.session, stop
	id := v.c.works.enter(w)
	go func() {
		defer stop()
		err := do(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil && !w.stopped && w.err == "" {
			w.err = w.words(err)
		}
		w.ended = true
	}()
	return redirect("/work/" + id)
}

func (ws *works) enter(w *work) (id string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byID == nil {
		ws.byID = make(map[string]*work)
	}
	if len(ws.order) == worksKept {
		delete(ws.byID, ws.order[0])
		ws.order = ws.order[1:]
	}
	id = rand.Text()
	ws.byID[id] = w
	ws.order = append(ws.order, id)
	return id
}

// did notes that one is done; more is false when the work was stopped.
func (w *work) did(err error) (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	w.done++
	if err != nil {
		if w.failed++; w.err == "" {
			w.err = w.words(err)
		}
	}
	return true
}

// each does one after the other, at most so many a second (0: as fast as they go).
func (w *work) each(ctx context.Context, names iter.Seq2[string, error], rate int, do func(string) error) error {
	var turn <-chan time.Time
	if rate > 0 {
		t := time.NewTicker(time.Second / time.Duration(rate))
		defer t.Stop()
		turn = t.C
	}
	first := true
	for name, err := range names {
		if err != nil {
			return err
		}
		if turn != nil && !first {
			select {
			case <-turn:
			case <-ctx.Done():
			}
		}
		first = false
		if ctx.Err() != nil || !w.did(do(name)) {
			return ctx.Err()
		}
	}
	return nil
}

// named are names that cannot fail to be found.
func named(names []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// words is what a person reads of an error.
func (w *work) words(err error) string {
	if w.gone != "" && client.IsNotFound(err) {
		return w.gone
	}
	return detail(err)
}

func showWork(v *visit) error {
	w, err := v.work()
	if err != nil {
		return err
	}
	return v.show("work", w.Title, w.look(v.r.PathValue("id")))
}

func stopWork(v *visit) error {
	w, err := v.work()
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.stop()
	return redirect("/work/" + url.PathEscape(v.r.PathValue("id")))
}

// work is the one of the path, if it is the visitor's.
func (v *visit) work() (*work, error) {
	ws := &v.c.works
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.byID[v.r.PathValue("id")]
	if w == nil || w.session != v.session {
		return nil, &fault{http.StatusNotFound, "This page does not exist."}
	}
	return w, nil
}

// workData is a look at a work.
type workData struct {
	ID, Title, Back     string
	Total, Done, Failed int
	Error               string
	Ended, Stopped      bool
	CanStop             bool
}

func (w *work) look(id string) workData {
	w.mu.Lock()
	defer w.mu.Unlock()
	return workData{id, w.Title, w.Back, w.Total, w.done, w.failed, w.err, w.ended, w.stopped, !w.ended && !w.server}
}
