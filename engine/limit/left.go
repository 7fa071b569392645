package limit

import (
	"context"
	"errors"
	"time"

	"xtimer/engine"
	"xtimer/engine/object"
)

// leftBehind ends the kind of an object that has the backlog of a flow key, or of a target, which
// was deleted: dues that it decides about may be rows for long, where another pause holds them.
const leftBehind = "-left"

// leftFor is how long such an object is kept at least. The next one of its app removes it.
const leftFor = 7 * 24 * time.Hour

// leftKey is the key of the object that another leaves behind.
func leftKey(k engine.ObjectKey) engine.ObjectKey {
	k.Kind += leftBehind
	return k
}

// Delete deletes an object. What that of a flow key or of a target says of dues that were held
// stays in force.
func Delete(ctx context.Context, set *object.Set, k engine.ObjectKey, when object.Precondition, now int64) error {
	if k.Kind != FlowKind && k.Kind != TargetKind {
		return set.Delete(ctx, k, when)
	}
	for {
		was := set.Get(k)
		if err := when(was); err != nil {
			return err
		}
		if x, err := Read(was); err == nil && x.backlog().UpTo() > now-leftFor.Milliseconds() {
			if err := leave(ctx, set, k, x.backlog(), now); err != nil {
				return err
			}
		}
		err := set.Delete(ctx, k, func(stands *engine.Object) error {
			if (stands == nil) != (was == nil) || stands != nil && stands.Version != was.Version {
				return errChanged
			}
			return nil
		})
		if !errors.Is(err, errChanged) {
			return err
		}
	}
}

// errChanged has Delete look again.
var errChanged = errors.New("the object was changed meanwhile")

// leave leaves a backlog behind, and removes those of the app that are older than leftFor.
func leave(ctx context.Context, set *object.Set, k engine.ObjectKey, b engine.Backlog, now int64) error {
	left := leftKey(k)
	x, err := Read(set.Get(left))
	if err != nil {
		return err
	}
	b = b.And(x.backlog())
	x.SkippedTo, x.LatestTo = b.Skip, b.Latest
	if _, _, err := set.Put(ctx, left, x.Body(), nil); err != nil {
		return err
	}
	for _, o := range set.List(left.Kind, left.App) {
		if o.UpdatedAt < now-leftFor.Milliseconds() {
			if err := set.Delete(ctx, o.ObjectKey, nil); err != nil && !errors.Is(err, engine.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}
