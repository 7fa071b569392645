// Package policy decides what becomes of a due: after an attempt, when it is found late,
// and when its timer was changed; and whether a change can be made. Its functions are
// pure: instants and what is known of tasks are arguments.
package policy
