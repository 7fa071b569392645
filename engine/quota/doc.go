// Package quota bounds what an app may have and do:
//
//	timers, bytes              a change that adds to them beyond is refused (Changes.Take)
//	creates_per_second         a create beyond is refused (Book.Create)
//	fires_per_second           a call beyond is held: a rule of the queue (engine/flow)
//	in_flight                  likewise
//
// The quota of an app is an object of kind "quota", under the name "app". An app without one
// costs a create the load of a pointer.
package quota
