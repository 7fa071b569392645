// Package callback makes the calls: one HTTP request for each attempt of a task.
//
// callback.go is the way of a call; target.go keeps the connections; dial.go and
// egress.go make them, and refuse the addresses that may not be called; request.go
// and signature.go write the request; outcome.go reads the answer.
package callback
