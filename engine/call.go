package engine

import "time"

// Caller makes the calls. httpapi's Callback is the real one.
type Caller interface {
	// Call makes one attempt: one request, no redirects, no silent repeats.
	// It returns within the timeout of the timer's callback and what c.Wait took,
	// whatever the target does. It is called by many goroutines at once.
	//
	// It writes the request's first byte within c.Send, and nothing when c.Send
	// refuses: then its outcome is not read.
	Call(c *Call) Outcome
}

// Call is one attempt to be made.
type Call struct {
	Timer       *Timer // its callback in force; not to be changed or kept
	Key         Key
	Attempt     int
	Redelivered bool // it may have been sent before
	// Fence is the fence under which the node has the timer's shard; 0: the process is alone.
	Fence uint64
	Gate  Gate // see Send; nil: always open
	// Batch: the call is of many tasks. Key and Attempt are of none then, and Timer is that of one
	// of them. nil: it is of one.
	Batch *BatchCall
}

// Gate decides whether a call that has been prepared (name resolved, connection
// made) may still be sent. From Enter until Leave a change of the timer waits,
// so what lies between them takes no time that a target could stretch.
type Gate interface {
	// Wait waits until limits allow the first byte, which is to follow at once, and returns for how long that was.
	// That is no part of the call's timeout. false: the call is not to be sent now. Send calls Wait, if the caller
	// has not.
	Wait() (waited time.Duration, ok bool)
	// Stay takes back what Wait has counted, for a call that is not ready after all. The next Wait waits anew.
	Stay()
	// Enter reports whether the first byte may be written now.
	Enter() bool
	// Leave follows each Enter that returned true. sent is false when the write
	// failed and provably no byte left: Enter may be asked again.
	Leave(sent bool)
}

// Wait waits until the limits of the call allow its first byte; see Gate. A call without a gate has no limits.
func (c *Call) Wait() (waited time.Duration, ok bool) {
	if c.Gate == nil {
		return 0, true
	}
	return c.Gate.Wait()
}

// Stay takes back what Wait has counted; see Gate.
func (c *Call) Stay() {
	if c.Gate != nil {
		c.Gate.Stay()
	}
}

// Send calls write, which writes the first bytes of the request without waiting
// for the target and reports whether any may have left, unless the call is not
// wanted any more: then it returns false.
func (c *Call) Send(write func() (sent bool)) bool {
	if c.Gate == nil {
		write()
		return true
	}
	if _, ok := c.Gate.Wait(); !ok || !c.Gate.Enter() {
		return false
	}
	c.Gate.Leave(write())
	return true
}

// Outcome of one attempt.
type Outcome struct {
	Class Class
	Code  int // the answer's status; 0 when there was none
	// ErrorClass is a stable word for what went wrong, one of ErrorClasses; "" when Class
	// is OK.
	ErrorClass string
	// Response is the first KiB of the answer's body; with SecretMissing, the name of the secret.
	// The callee may keep it.
	Response []byte
	// Sent is when the request was handed to the socket; zero when it was not.
	Sent time.Time
	// Took is from the start of the attempt to its end.
	Took time.Duration
	// Phases of Took, by the caller; the engine adds what was before it.
	Phases Phases
	// RetryAfter that the target asked for; 0: none.
	RetryAfter time.Duration
	// Batch identifies the call that several tasks shared, and BatchSize is how many did; the engine
	// sets both. 0: the task had a call of its own.
	Batch     uint64
	BatchSize int
}

// ErrorClasses are the words for how an attempt fails.
var ErrorClasses = []string{
	"timeout", "refused", "dns", "tls", "egress_denied", "stale_connection", "reset", "protocol", "too_large", "status", "journal", "panic", SecretMissing, "bad_answer",
}

// SecretMissing is the word of an attempt that was not made, for a secret that it was to send does
// not exist.
const SecretMissing = "secret_missing"

// Phases say where an attempt spent its time, one after the other. The last one
// that is not zero is the one in which it ended. All are zero when nobody knows.
type Phases struct {
	Wheel     time.Duration // from its due, or its retry's time, until it left the wheel
	Hold      time.Duration // what held it: a pause, or the limit of a key
	Queue     time.Duration // until a worker and a connection to its target were free
	Dial      time.Duration // DNS and TCP; 0 on a kept connection
	TLS       time.Duration
	Send      time.Duration // handing the request to the socket
	FirstByte time.Duration // until the answer began
	Read      time.Duration // until the answer's end
}

// Class is what an outcome means for the task.
type Class uint8

// The classes of outcomes.
const (
	ClassOK       Class = iota // within the callback's success codes
	ClassRejected              // a final answer: no repeat
	ClassRetry                 // an answer that asks for a repeat: 408, 425, 429, 5xx
	ClassNotSent               // provably not sent: a repeat is safe
	ClassUnknown               // may have been sent: timeout, reset after the first byte
)
