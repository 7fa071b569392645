package object

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
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

// Write is a put with all that it can be told.
type Write struct {
	Key  engine.ObjectKey
	Body []byte
	When Precondition // may be nil
	// Keep, if set, returns the body with what it keeps of what stands when the write is made; nil: nothing does.
	Keep func(stands *engine.Object, body []byte) ([]byte, error)
	// Same reports whether two bodies say the same; nil: bytes.Equal.
	Same func(a, b []byte) bool
	Dry  bool // judge it, and store nothing
}

// Put stores an object under a key. An object with the same body is left as it is. when may
// be nil. The author is that of the context, see engine.WithAuthor.
func (s *Set) Put(ctx context.Context, k engine.ObjectKey, body []byte, when Precondition) (Result, *engine.Object, error) {
	return s.Write(ctx, Write{Key: k, Body: body, When: when})
}

// Write makes a put. The object is what stands afterwards; of a dry one, what would.
func (s *Set) Write(ctx context.Context, w Write) (Result, *engine.Object, error) {
	if err := cmp.Or(checkApp(w.Key.App), CheckName(w.Key.Name)); err != nil {
		return "", nil, err
	}
	if len(w.Body) > MaxBody {
		return "", nil, errTooLarge
	}
	if w.Same == nil {
		w.Same = bytes.Equal
	}
	var result Result
	var o *engine.Object
	err := s.write(ctx, func() error {
		return s.attempt(w.Key, w.When, w.Body, func(stands *engine.Object) (err error) {
			result, o, err = s.put(ctx, &w, stands)
			return err
		})
	})
	if err != nil {
		return "", nil, err
	}
	return result, o, nil
}

// put replaces what stands.
func (s *Set) put(ctx context.Context, w *Write, stands *engine.Object) (Result, *engine.Object, error) {
	body := w.Body
	if w.Keep != nil {
		var err error
		if body, err = w.Keep(stands, body); err != nil {
			return "", nil, err
		}
	}
	if stands != nil && w.Same(stands.Body, body) {
		return Unchanged, stands, nil
	}
	p, result := s.next(ctx, w.Key, body, stands), Created
	if stands != nil {
		result = Updated
	} else if !s.kind(w.Key).Uncounted && s.count(w.Key.App) >= MaxOfApp {
		return "", nil, errTooMany
	}
	if w.Dry {
		return result, p.Object, nil
	}
	if err := s.store.PutObjects(ctx, p); err != nil {
		return "", nil, err
	}
	s.replace(w.Key, p.Object)
	s.changed(w.Key)
	return result, p.Object, nil
}

// next is the put of the object that follows what stands.
func (s *Set) next(ctx context.Context, k engine.ObjectKey, body []byte, stands *engine.Object) engine.ObjectPut {
	p := engine.ObjectPut{Object: &engine.Object{ObjectKey: k, Version: 1, UpdatedAt: s.now().UnixMilli(), UpdatedBy: engine.Author(ctx), Body: bytes.Clone(body)}}
	if stands != nil {
		p.Was, p.Version = stands.Version, stands.Version+1
	}
	return p
}

// Delete deletes an object; it returns engine.ErrNotFound if there is none.
func (s *Set) Delete(ctx context.Context, k engine.ObjectKey, when Precondition) error {
	return s.write(ctx, func() error {
		return s.attempt(k, when, nil, func(stands *engine.Object) error {
			if stands == nil {
				return engine.ErrNotFound
			}
			return s.deleteAll(ctx, []engine.ObjectKey{k})
		})
	})
}

// doubtful is how long a write whose outcome is not known may yet appear in the store.
const doubtful = 20 * time.Second

// write judges a write and makes it. If the store has another version than the set, which
// can be after a write whose outcome is not known, the set is read again, and the write attempted again.
func (s *Set) write(ctx context.Context, attempt func() error) error {
	s.writes <- struct{}{}
	defer func() { <-s.writes }()
	if !s.loaded {
		return errNotLoaded
	}
	err := attempt()
	if errors.Is(err, engine.ErrConflict) {
		if err := s.load(ctx); err != nil {
			return err
		}
		err = attempt()
	}
	s.doubt(err)
	return err
}

// doubt has Follow read the objects again after an error that does not tell whether the write
// is made.
func (s *Set) doubt(err error) {
	var f *engine.Fault
	if err != nil && (!errors.As(err, &f) || f.Kind == engine.FaultUnavailable) {
		select {
		case s.doubted <- struct{}{}:
		default:
		}
	}
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
	if users := s.users[k.Kind]; users != nil && next == nil && stands != nil {
		if names := users(k); len(names) > 0 {
			return inUse(names)
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

// unrevised is how long FollowOthers trusts the revision alone. A node of an older version, which
// runs beside newer ones during an upgrade, changes objects without changing the revision.
const unrevised = time.Minute

// FollowOthers asks each second whether the revision of the objects has changed, and reads them
// again if so, for other nodes write them too. It returns nil when ctx ends.
func (s *Set) FollowOthers(ctx context.Context) error {
	revised, is := s.store.(engine.Revised)
	var seen uint64
	var read time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		// If the store is away, the next second tries again.
		began, revision := time.Now(), uint64(0)
		if is {
			var err error
			if revision, err = revised.ObjectsRevision(ctx); err != nil || revision == seen && began.Sub(read) < unrevised {
				continue
			}
		}
		if s.Load(ctx) == nil {
			seen, read = revision, began
		}
	}
}

// checkApp returns an error for what is no name of an app, nor "*".
func checkApp(app string) error {
	ok := len(app) > 0 && len(app) <= 64 && app != "." && app != ".."
	for i := 0; ok && i < len(app); i++ {
		ok = isLetter(app[i]) || app[i] != '/' && isPunctuation(app[i])
	}
	if !ok && app != "*" {
		return engine.Invalid("app", "bad_name", "must be 1 to 64 letters, digits or characters from ._:-, or * for all apps")
	}
	return nil
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isPunctuation(c byte) bool { return c == '.' || c == '_' || c == ':' || c == '/' || c == '-' }

// CheckName returns an error for what is no name of an object.
func CheckName(name string) error {
	if star := strings.IndexByte(name, '*'); star >= 0 && star < len(name)-1 {
		return engine.Invalid("name", "star_inside", "must have no * but at its end")
	}
	ok := len(name) > 0 && len(name) <= 128
	for i := 0; ok && i < len(name); i++ {
		ok = isLetter(name[i]) || isPunctuation(name[i]) || name[i] == '*' && i == len(name)-1
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
	errTooLarge  = &engine.Fault{Kind: engine.FaultInvalid, Code: "too_large", Detail: "the object is larger than 64 KiB"}
	errNotLoaded = &engine.Fault{Kind: engine.FaultUnavailable, Code: "not_ready", Detail: "the server is starting: it has not read the objects yet"}
)

// inUse is the error of a delete of an object that others name; users are their names.
func inUse(users []string) error {
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
