package httpapi

import (
	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/wire"
)

// reply is what a handler gives back.
type reply struct {
	status   int      // 0: 200
	body     renderer // nil: none
	made     *[]byte  // the body as it is, from buffers; nil: none
	fixed    []byte   // the body as it is and stays; nil: none
	kind     string   // Content-Type; "": application/json
	version  uint32   // of the timer, for the ETag; 0: none
	location string
	replayed bool // by its Idempotency-Key
	sent     bool // the handler wrote the answer itself
}

// renderer appends an answer to b.
type renderer interface {
	render(b []byte) []byte
}

// rendered is an answer that is ready.
type rendered []byte

func (r rendered) render(b []byte) []byte { return append(b, r...) }

// renderFunc is a renderer that is a function.
type renderFunc func(b []byte) []byte

func (f renderFunc) render(b []byte) []byte { return f(b) }

// taskAnswer renders one task.
type taskAnswer struct{ t *engine.Task }

func (a taskAnswer) render(b []byte) []byte { return wire.AppendTask(b, a.t) }

// viewAnswer renders a timer as a reader sees it.
type viewAnswer struct{ v scheduler.View }

func (a viewAnswer) render(b []byte) []byte { return wire.AppendView(b, &a.v) }
