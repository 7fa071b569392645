package limit

import (
	"cmp"
	"strings"

	"xtimer/engine"
	"xtimer/engine/object"
)

// patterns are the objects of the patterns that match a flow key, the longest first.
func patterns(set *object.Set, k engine.ObjectKey) (all []*engine.Object) {
	if k.Kind != FlowKind || strings.HasSuffix(k.Name, "*") {
		return nil
	}
	for n := len(k.Name); n >= 0; n-- {
		if o := set.Get(FlowKey(k.App, k.Name[:n]+"*")); o != nil {
			all = append(all, o)
		}
	}
	return all
}

// none stands for an object that does not exist: it says nothing, and has version 0.
func none(k engine.ObjectKey) *engine.Object { return &engine.Object{ObjectKey: k, Body: []byte("{}")} }

// OfPattern is the object of a flow key that has none of its own, while a pattern matches the key; else nil. Its version is 0.
func OfPattern(set *object.Set, k engine.ObjectKey) *engine.Object {
	if len(patterns(set, k)) == 0 {
		return nil
	}
	return none(k)
}

// InForce is what an object says together with the patterns that match its flow key, as flow.Rules has them: the limit of the
// longest if the object has none, the longest pause and the longest cooldown. pattern is the one whose limit counts; "": none.
func InForce(set *object.Set, o *engine.Object, now int64) (x Object, pattern string, err error) {
	if x, err = Read(o); err != nil {
		return x, "", err
	}
	for _, o := range patterns(set, o.ObjectKey) {
		y, err := Read(o)
		if err != nil {
			continue // the book has logged it
		}
		if x.Limit == nil && y.Limit != nil {
			x.Limit, pattern = y.Limit, o.Name
		}
		if p := y.Paused(o, now); p != nil && p.Until > x.PausedUntil {
			x.PausedUntil, x.Reason, x.PausedSince, x.PausedBy = p.Until, p.Reason, p.Since, p.By
		}
		x.CooldownUntil = max(x.CooldownUntil, y.CooldownUntil)
	}
	return x, pattern, nil
}

// Undefined are those of the flow keys of a timer of an app that no object limits.
func Undefined(set *object.Set, app string, keys engine.Flow) (undefined []string) {
	for _, key := range keys.Keys() {
		k := FlowKey(app, key)
		if x, _, err := InForce(set, cmp.Or(set.Get(k), none(k)), 0); err != nil || x.Limit == nil {
			undefined = append(undefined, key)
		}
	}
	return undefined
}
