// Package object holds what users configure beside timers: the objects of all apps, in
// memory. The cold tier has them durably.
//
// A package that has a kind of objects registers the kind, and keeps what it needs of
// its objects in a form of its own, which Kind.Changed renews:
//
//	set.Register(object.Kind{Name: "flow", Check: check, Changed: changed})
//	res, err := set.Put(ctx, engine.ObjectKey{Kind: "flow", App: app, Name: name}, body, nil)
//	o := set.Get(key)                     nil: there is none
//	all := set.List("flow", app)          in the order of names; app "*" is an app of its own here
//
// A write is in the cold tier before it is in the set, and in the set before Put or Delete
// returns. Writes are made one at a time; reads wait for none of them.
package object
