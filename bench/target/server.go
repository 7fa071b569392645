package target

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Server is an HTTP server on loopback that answers every request with 200 after a
// delay. A mute target reads requests and answers none until Answer is called. It
// holds one goroutine and two small buffers for each open connection.
type Server struct {
	URL string

	delay time.Duration
	mute  atomic.Bool
	ln    net.Listener

	mu   sync.Mutex // guards all below
	open map[net.Conn]bool
	Log
}

// Listen starts a target that answers after a delay.
func Listen(delay time.Duration) (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &Server{URL: "http://" + ln.Addr().String() + "/call", delay: delay, ln: ln, open: map[net.Conn]bool{}}
	t.reset()
	go t.accept()
	return t, nil
}

// ListenMute starts a target that is mute.
func ListenMute() (*Server, error) {
	t, err := Listen(0)
	if err == nil {
		t.mute.Store(true)
	}
	return t, err
}

// Answer ends the silence of a mute target: requests that it has read and that
// their caller still waits for are answered as well.
func (t *Server) Answer() {
	t.mute.Store(false)
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		_ = c.SetReadDeadline(time.Now()) // wakes await
	}
}

// Close ends the target and all its connections.
func (t *Server) Close() {
	t.ln.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		c.Close()
	}
}

// Reset forgets all calls.
func (t *Server) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset()
}

// Look calls f with the log while no call is added to it.
func (t *Server) Look(f func(l *Log)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.Log)
}

func (t *Server) accept() {
	for {
		c, err := t.ln.Accept()
		if err != nil {
			return
		}
		t.mu.Lock()
		t.open[c] = true
		t.mu.Unlock()
		go t.serve(c)
	}
}

var ok = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

// serve answers the requests of one connection.
func (t *Server) serve(c net.Conn) {
	defer func() {
		t.mu.Lock()
		delete(t.open, c)
		t.mu.Unlock()
		c.Close()
	}()
	r := bufio.NewReaderSize(c, 4096)
	for {
		call, err := readCall(r)
		if err != nil {
			return
		}
		t.mu.Lock()
		t.add(call, time.Now())
		t.mu.Unlock()
		if t.mute.Load() && !t.await(c, r) {
			return
		}
		time.Sleep(t.delay)
		if _, err := c.Write(ok); err != nil {
			return
		}
	}
}

// await reports whether the silence ended before the caller hung up.
func (t *Server) await(c net.Conn, r *bufio.Reader) bool {
	_, err := r.Peek(1) // nothing comes, until an end or the deadline that Answer sets
	if t.mute.Load() || err == io.EOF {
		return false
	}
	return c.SetReadDeadline(time.Time{}) == nil
}

// readCall reads one request.
func readCall(r *bufio.Reader) (c call, err error) {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return c, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case first:
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(value))
		case bytes.EqualFold(name, []byte("X-Xtimer-Attempt")):
			c.attempt, err = strconv.Atoi(string(value))
		case bytes.EqualFold(name, []byte("X-Xtimer-Redelivered")):
			c.redelivered = true
		case bytes.EqualFold(name, []byte("X-Xtimer-Task")):
			c.Key, err = ParseKey(string(value))
		}
		if err != nil {
			return c, fmt.Errorf("header %s: %w", name, err)
		}
	}
	_, err = r.Discard(length)
	return c, err
}
