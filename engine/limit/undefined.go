package limit

import (
	"slices"
	"strings"

	"xtimer/engine"
	"xtimer/engine/object"
)

// Undefined are those of the flow keys of a timer of an app that no object limits.
func Undefined(set *object.Set, app string, keys engine.Flow) (undefined []string) {
	limits := func(o *engine.Object) bool {
		x, err := Read(o)
		return err == nil && x.Limit != nil
	}
	for _, key := range keys.Keys() {
		matches := func(o *engine.Object) bool {
			prefix, is := strings.CutSuffix(o.Name, "*")
			return (o.Name == key || is && strings.HasPrefix(key, prefix)) && limits(o)
		}
		if !limits(set.Get(FlowKey(app, key))) && !slices.ContainsFunc(set.List(FlowKind, app), matches) {
			undefined = append(undefined, key)
		}
	}
	return undefined
}
