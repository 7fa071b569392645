package callback

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// The words of Outcome.ErrorClass.
const (
	wordTimeout  = "timeout"
	wordRefused  = "refused" // no connection could be made
	wordDNS      = "dns"
	wordTLS      = "tls"
	wordEgress   = "egress_denied"
	wordReset    = "reset"
	wordProtocol = "protocol"
	wordTooLarge = "too_large" // the answer's headers
	wordStatus   = "status"
	// wordBadAnswer: the answer to a batch does not say which tasks failed.
	wordBadAnswer = "bad_answer"
)

// stageError says where an attempt was when err ended it, by the word that fits
// unless err knows a better one.
type stageError struct {
	word string
	err  error
}

func (e *stageError) Error() string { return e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

// readAnswer reads the answer to a request that was sent. The connection may be
// kept only if keep says so.
//
// The outcome follows the status once an answer is complete, or is known to be
// larger than is read (maxBody), and its first KiB is here. An
// answer that breaks off, by a timeout or a hang-up, leaves it unknown, also
// with a status: a target that dies while it answers has not said yes.
func readAnswer(cn *link, s *scratch, success string, batch *engine.BatchCall) (o engine.Outcome, keep bool, err error) {
	o.Class = engine.ClassUnknown
	s.answer.Reset(cn)
	head, err := readHead(s, &o)
	if err != nil {
		return o, false, err
	}
	whole := false
	if batch != nil { // not by a variable for both: o would be garbage
		whole, err = readBatchBody(s, &o)
	} else {
		whole, err = readBody(s, &o)
	}
	if err != nil {
		return o, false, answerError(err)
	}
	h := &s.resp.Header
	// Bytes beyond the answer must not become the answer to the next request.
	keep = whole && !head.bare && !hangsUp(h) && s.answer.Buffered() == 0
	cn.maxIdle = maxIdle
	if head.keepAlive {
		cn.maxIdle = idleTime(h.Peek("Keep-Alive"))
	}
	classify(&o, success, h)
	if batch != nil {
		spread(&o, batch, h, s.resp.Body(), whole, success)
	}
	return o, keep, nil
}

// readHead reads the head of the answer, and those of the 1xx answers before it. What
// it found is of all of them.
func readHead(s *scratch, o *engine.Outcome) (all answerHead, err error) {
	for n := 0; ; n++ {
		head := peekHead(s.answer)
		if head.endless {
			return all, &stageError{wordProtocol, errors.New("the head of the response ends in LF without CR")}
		}
		if err := s.resp.Header.Read(s.answer); err != nil {
			return all, answerError(err)
		}
		if head.zero {
			return all, &stageError{wordProtocol, errors.New("status 000 is not a valid response")}
		}
		all.bare = all.bare || head.bare
		all.keepAlive = all.keepAlive || head.keepAlive
		o.Code = s.resp.StatusCode()
		if o.Code >= 200 || o.Code == fasthttp.StatusSwitchingProtocols {
			break
		}
		if n == maxInterim {
			return all, &stageError{wordProtocol, errors.New("the target keeps sending 1xx responses")}
		}
	}
	if o.Code < 200 || o.Code > 999 {
		return all, &stageError{wordProtocol, fmt.Errorf("status %d is not a valid response", o.Code)}
	}
	return all, nil
}

// readBody reads the body, or as much of a large one as is handed on; whole reports
// whether the answer was read to its end.
func readBody(s *scratch, o *engine.Outcome) (whole bool, err error) {
	resp := &s.resp
	switch n := resp.Header.ContentLength(); {
	case o.Code == fasthttp.StatusNoContent, o.Code == fasthttp.StatusNotModified:
		return true, nil
	case n > maxResponse:
		// What is not handed on need not lie in memory.
		head, err := s.answer.Peek(maxResponse)
		o.Response = bytes.Clone(head)
		whole = n <= maxBody
		if err == nil && whole {
			_, err = s.answer.Discard(n)
		}
		return whole, err
	}
	whole = true
	err = resp.ReadBody(s.answer, maxBody)
	if err == nil && resp.Header.ContentLength() == -1 {
		if err = resp.Header.ReadTrailer(s.answer); err != nil && !brokeOff(err) {
			whole, err = false, nil // a trailer that may not be sent undoes no answer
		}
	}
	body := resp.Body()
	if errors.Is(err, fasthttp.ErrBodyTooLarge) { // chunks; the one that is too large has not been read
		whole, err = false, nil
		if n := maxResponse - len(body); n > 0 {
			var more []byte
			more, err = s.answer.Peek(n)
			body = append(body, more...)
		}
	}
	if len(body) > 0 {
		o.Response = bytes.Clone(body[:min(len(body), maxResponse)])
	}
	return whole, err
}

// classify says by the status what became of the call.
func classify(o *engine.Outcome, success string, h *fasthttp.ResponseHeader) {
	o.Class = classOf(o.Code, success)
	switch o.Class {
	case engine.ClassOK:
		return
	case engine.ClassRetry:
		o.RetryAfter = retryAfter(h.Peek("Retry-After"), time.Now())
	}
	o.ErrorClass = wordStatus
}

func classOf(code int, success string) engine.Class {
	switch {
	case matchSuccess(success, code):
		return engine.ClassOK
	case code == fasthttp.StatusRequestTimeout, code == 425,
		code == fasthttp.StatusTooManyRequests, code >= 500 && code <= 599:
		return engine.ClassRetry
	}
	return engine.ClassRejected
}

// answerHead is what must be known of an answer's head and fasthttp does not tell.
type answerHead struct {
	bare      bool // a line ends without CR: such an answer may have another end for others
	endless   bool // its end is a bare LF, for which fasthttp would wait until the timeout
	zero      bool // the status is 000, which fasthttp takes for 200
	keepAlive bool // a header begins with k: it may be Keep-Alive, which few send
}

// peekHead looks at the head of an answer that is still to be read. It finds nothing
// in an answer that is not HTTP, or does not come whole: the reading fails there.
func peekHead(r *bufio.Reader) (h answerHead) {
	for n := 1; ; {
		if _, err := r.Peek(n); err != nil {
			return answerHead{}
		}
		b, _ := r.Peek(r.Buffered())
		h = answerHead{}
		begun, whole := false, true // the line before ended in CRLF
		for rest := b; ; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			cr := i > 0 && rest[i-1] == '\r'
			empty := i == 0 || i == 1 && cr
			h.bare = h.bare || !cr
			switch {
			case empty && begun:
				h.endless = !cr || !whole
				return h
			case empty: // before the status line
			case begun:
				h.keepAlive = h.keepAlive || rest[0]|0x20 == 'k'
				whole = cr
			case !bytes.HasPrefix(rest, []byte("HTTP/")):
				return answerHead{}
			default:
				_, status, _ := bytes.Cut(rest[:i], []byte{' '})
				h.zero = bytes.HasPrefix(status, []byte("000"))
				begun = true
			}
			rest = rest[i+1:]
		}
		n = len(b) + 1
	}
}

// hangsUp reports whether a target will close the connection, or may: fasthttp knows the
// word close in small letters alone, and the last line of a header. What is not said
// to be kept is not.
func hangsUp(h *fasthttp.ResponseHeader) bool {
	if h.ConnectionClose() {
		return true
	}
	for _, v := range h.PeekAll(fasthttp.HeaderConnection) {
		if !bytes.EqualFold(bytes.TrimSpace(v), []byte("keep-alive")) {
			return true
		}
	}
	return false
}

// idleTime is for how long a connection may be kept by the target's own word,
// "timeout=5, max=100" in seconds: a second less, or half of it, so that a request
// does not cross the target's hang-up on its way; maxIdle at most, and without a word.
func idleTime(keepAlive []byte) time.Duration {
	for part := range bytes.SplitSeq(keepAlive, []byte{','}) {
		name, value, _ := bytes.Cut(part, []byte{'='})
		if !bytes.EqualFold(bytes.TrimSpace(name), []byte("timeout")) {
			continue
		}
		if n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 16); err == nil {
			said := time.Duration(n) * time.Second
			return min(said-min(said/2, time.Second), maxIdle)
		}
	}
	return maxIdle
}

func matchSuccess(spec string, code int) bool {
	if spec == engine.DefaultSuccess || spec == "" {
		return code/100 == 2
	}
	return plan.MatchSuccess(spec, code)
}

// answerError finds the stage of an error of reading an answer: the connection
// (then err tells), or the answer itself.
func answerError(err error) error {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		return &stageError{wordTooLarge, err}
	case brokeOff(err):
		return &stageError{wordReset, err}
	}
	return &stageError{wordProtocol, err}
}

// brokeOff reports whether an error is of the connection, and not of what came over it.
func brokeOff(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) || isTimeout(err)
}

// word is the ErrorClass for an error of an attempt.
func word(err error) string {
	var stage *stageError
	var dns *net.DNSError
	var denied *deniedError
	var alert tls.AlertError
	switch {
	case errors.As(err, &denied):
		return wordEgress
	case errors.As(err, &dns):
		return wordDNS
	case isTimeout(err):
		return wordTimeout
	case errors.As(err, &alert):
		return wordTLS
	case errors.As(err, &stage):
		return stage.word
	}
	return wordReset
}

// isTimeout goes by the method, as the errors of a deadline have many types.
func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// retryAfter reads the header of that name: seconds, or a date in any of the
// three forms of HTTP. It is 0 if there is none, it is past, or it is neither.
func retryAfter(v []byte, now time.Time) time.Duration {
	const most = 365 * 24 * time.Hour
	if len(v) == 0 {
		return 0
	}
	s := string(bytes.TrimSpace(v))
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return time.Duration(min(n, uint64(most/time.Second))) * time.Second
	} else if errors.Is(err, strconv.ErrRange) {
		return most
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		if t, err := time.Parse(layout, s); err == nil {
			// Not before it, though the clock is counted in ms and read again.
			return min(max(t.Add(2*time.Millisecond).Sub(now), 0), most)
		}
	}
	return 0
}
