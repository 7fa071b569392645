// Package callback makes the calls: one HTTP request for each attempt of a task.
//
// callback.go makes a call; target.go keeps the connections; dial.go and egress.go open
// them, and refuse forbidden addresses; request.go and signature.go write the request;
// outcome.go reads the response.
package callback
