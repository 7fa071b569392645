package object

import (
	"bytes"
	"context"
	"errors"
	"time"

	"xtimer/engine"
)

// Result is what a put did.
type Result string

// The results of a put.
const (
	Created   Result = "created"
	Updated   Result = "updated"
	Unchanged Result = "unchanged"
)

// Precondition returns an error if a write is not to be made while this object stands; nil:
// none does.
type Precondition func(stands *engine.Object) error

// Put stores an object under a key. An object with the same body is left as it is. when may
// be nil. The author is that of the context, see engine.WithAuthor.
func (s *Set) Put(ctx context.Context, k engine.ObjectKey, body []byte, when Precondition) (Result, *engine.Object, error) {
	return s.PutSealed(ctx, k, body, when, bytes.Equal)
}

// PutSealed is Put for bodies whose sameness only same can see.
func (s *Set) PutSealed(ctx context.Context, k engine.ObjectKey, body []byte, when Precondition, same func(a, b []byte) bool) (Result, *engine.Object, error) {
	if err := CheckName(k.Name); err != nil {
		return "", nil, err
	}
	if len(body) > MaxBody {
		return "", nil, &engine.Fault{Kind: engine.FaultInvalid, Code: "too_large", Detail: "an object has 64 KiB at most"}
	}
	var result Result
	var o *engine.Object
	err := s.write(ctx, k, when, body, func(stands *engine.Object) error {
		if stands != nil && same(stands.Body, body) {
			result, o = Unchanged, stands
			return nil
		}
		o = &engine.Object{ObjectKey: k, Version: 1, UpdatedAt: s.now().UnixMilli(), UpdatedBy: engine.Author(ctx), Body: bytes.Clone(body)}
		result = Created
		was := uint32(0)
		if stands != nil {
			was, o.Version, result = stands.Version, stands.Version+1, Updated
		} else if s.count(k.App) >= MaxOfApp {
			return errTooMany
		}
		if err := s.store.PutObject(ctx, o, was); err != nil {
			return err
		}
		s.replace(k, o)
		s.changed(k)
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	return result, o, nil
}

// Delete deletes an object; it returns engine.ErrNotFound if there is none.
func (s *Set) Delete(ctx context.Context, k engine.ObjectKey, when Precondition) error {
	return s.write(ctx, k, when, nil, func(stands *engine.Object) error {
		if stands == nil {
			return engine.ErrNotFound
		}
		if err := s.store.DeleteObject(ctx, k, stands.Version); err != nil {
			return err
		}
		s.replace(k, nil)
		s.changed(k)
		return nil
	})
}

// doubtful is how long a write whose outcome is not known may yet appear in the store.
const doubtful = 20 * time.Second

// write judges a write and makes it. If the store has another version than the set, which
// can be after a write whose outcome is not known, the set is read again first.
func (s *Set) write(ctx context.Context, k engine.ObjectKey, when Precondition, next []byte, make func(stands *engine.Object) error) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	if !s.loaded {
		return errNotLoaded
	}
	err := s.attempt(k, when, next, make)
	if errors.Is(err, engine.ErrConflict) {
		if err := s.load(ctx); err != nil {
			return err
		}
		err = s.attempt(k, when, next, make)
	}
	var f *engine.Fault
	if err != nil && (!errors.As(err, &f) || f.Kind == engine.FaultUnavailable) {
		select {
		case s.doubted <- struct{}{}:
		default:
		}
	}
	return err
}

func (s *Set) attempt(k engine.ObjectKey, when Precondition, next []byte, make func(stands *engine.Object) error) error {
	stands := s.Get(k)
	if when != nil {
		if err := when(stands); err != nil {
			return err
		}
	}
	if check := s.kind(k).Check; check != nil && (next != nil || stands != nil) {
		if err := check(k, next); err != nil {
			return err
		}
	}
	return make(stands)
}

func (s *Set) count(app string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.of[app]
}

// Follow reads the objects again, each second, while a write whose outcome is not known may
// yet appear in the store. It returns nil when ctx ends.
func (s *Set) Follow(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.doubted:
		}
		for until := time.Now().Add(doubtful); time.Now().Before(until) && ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			if err := s.Load(ctx); err != nil {
				until = time.Now().Add(doubtful) // the store is away
			}
		}
	}
}

// CheckName returns an error for what is no name of an object.
func CheckName(name string) error {
	ok := len(name) > 0 && len(name) <= 128
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c == '.' || c == '_' || c == ':' || c == '/' || c == '-' || c == '*' && i == len(name)-1
	}
	if !ok || name == "." || name == ".." {
		return engine.Invalid("name", "bad_name", "must be 1 to 128 letters, digits or characters from ._:/-, and may end in *")
	}
	return nil
}

var (
	errTooMany = &engine.Fault{
		Kind: engine.FaultInvalid, Code: "too_many_objects", Detail: "the app has 10,000 objects already: delete some that are not needed",
	}
	errNotLoaded = &engine.Fault{Kind: engine.FaultUnavailable, Code: "not_ready", Detail: "the server is starting: it has not read the objects yet"}
)

// InUse is the error of a delete of an object that others name; users are their names.
func InUse(users []string) error {
	const most = 10
	detail := "it is used by "
	for i, u := range users[:min(len(users), most)] {
		if i > 0 {
			detail += ", "
		}
		detail += u
	}
	if len(users) > most {
		detail += " and others"
	}
	return &engine.Fault{Kind: engine.FaultConflict, Code: "in_use", Detail: detail}
}
