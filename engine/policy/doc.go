// Package policy decides what happens to a due after an attempt, when the due is found
// late, and when its timer was changed or comes from another store. It also decides
// whether a change can be made.
// Its functions are pure: instants and the state of tasks are arguments.
package policy
