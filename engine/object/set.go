package object

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"xtimer/engine"
)

// MaxOfApp is how many objects an app may have, of all kinds.
const MaxOfApp = 10_000

// MaxBody is how large the body of an object may be.
const MaxBody = 64 << 10

// Store is the part of engine.Cold that a set writes to.
type Store interface {
	PutObjects(ctx context.Context, puts ...engine.ObjectPut) error
	DeleteObjects(ctx context.Context, of ...*engine.Object) error
	Objects(ctx context.Context, yield func([]engine.Object) error) error
}

// Kind is what the package that has a kind of objects says of it.
type Kind struct {
	Name string
	// Check, if set, may refuse a write, before it is made; next is nil for a delete. No
	// write of any kind is made meanwhile, so what Check reads in the set stays until the
	// write is made.
	Check func(k engine.ObjectKey, next []byte) error
	// Changed, if set, is called when an object of the kind was changed, before Put or Delete
	// returns, and with a zero key after a load, when any may have changed. No write of any
	// kind is made meanwhile. An object that Get returns is the same one until it is changed.
	Changed func(k engine.ObjectKey)
	// ClockSet, if set, is called when the wall clock was set: an object may say until when it
	// counts. No write of any kind is made meanwhile.
	ClockSet func()
	// Uncounted: the objects do not count towards MaxOfApp, for the program makes them.
	Uncounted bool
}

// Set has all objects. Its methods may be called by many goroutines.
type Set struct {
	store Store
	now   func() time.Time
	log   *slog.Logger

	writes chan struct{} // has room for one: held for each write, and for a load
	loaded bool          // guarded by writes
	kinds  []Kind        // guarded by writes
	// users return the objects that name an object of a kind; guarded by writes.
	users map[string]func(engine.ObjectKey) []string
	// doubted holds one: there was a write whose outcome is not known, see Follow.
	doubted chan struct{}

	mu  sync.RWMutex // guards what follows; who changes it has writes too
	all map[part][]*engine.Object
	of  map[string]int // how many an app has
}

// part is the objects of a kind and an app, which are sorted by name.
type part struct{ kind, app string }

// New returns a set without objects, until Load.
func New(store Store, now func() time.Time, log *slog.Logger) *Set {
	return &Set{store: store, now: now, log: log, writes: make(chan struct{}, 1), doubted: make(chan struct{}, 1), all: map[part][]*engine.Object{}, of: map[string]int{}, users: map[string]func(engine.ObjectKey) []string{}}
}

// UsedBy has the delete of an object of a kind refused while other objects name it: users returns
// those. No write of any kind is made meanwhile.
func (s *Set) UsedBy(kind string, users func(engine.ObjectKey) []string) {
	s.writes <- struct{}{}
	defer func() { <-s.writes }()
	s.users[kind] = users
}

// Register adds a kind.
func (s *Set) Register(k Kind) {
	s.writes <- struct{}{}
	defer func() { <-s.writes }()
	s.kinds = append(s.kinds, k)
	if s.loaded && k.Changed != nil {
		k.Changed(engine.ObjectKey{})
	}
}

// Load reads all objects from the store. It leaves out damaged ones, and logs them.
func (s *Set) Load(ctx context.Context) error {
	s.writes <- struct{}{}
	defer func() { <-s.writes }()
	return s.load(ctx)
}

func (s *Set) load(ctx context.Context) error {
	all, of := map[part][]*engine.Object{}, map[string]int{}
	err := s.store.Objects(ctx, func(page []engine.Object) error {
		for _, o := range page {
			if o.Damaged != nil {
				s.log.Error("an object is damaged and left out; put it again", "object", o.ObjectKey.String(), "error", o.Damaged.Err)
				continue
			}
			p := part{o.Kind, o.App}
			all[p] = append(all[p], s.kept(&o))
			if !s.kind(o.ObjectKey).Uncounted {
				of[o.App]++
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot read the objects: %w", err)
	}
	if s.loaded && s.isAs(all) {
		return nil
	}
	s.mu.Lock()
	s.all, s.of = all, of
	s.mu.Unlock()
	s.loaded = true
	s.anyChanged()
	return nil
}

// anyChanged tells all packages that any object may have changed. Writes is held.
func (s *Set) anyChanged() {
	for _, k := range s.kinds {
		if k.Changed != nil {
			k.Changed(engine.ObjectKey{})
		}
	}
}

// kept is the object that the set has already if it is as the one that was read.
func (s *Set) kept(read *engine.Object) *engine.Object {
	o := s.Get(read.ObjectKey)
	if o != nil && o.Version == read.Version && o.UpdatedAt == read.UpdatedAt && string(o.Body) == string(read.Body) {
		return o
	}
	return read
}

// ClockSet tells the packages that asked for it that the wall clock was set.
func (s *Set) ClockSet(ctx context.Context) {
	select {
	case s.writes <- struct{}{}:
		defer func() { <-s.writes }()
	case <-ctx.Done():
		return
	}
	for _, k := range s.kinds {
		if s.loaded && k.ClockSet != nil {
			k.ClockSet()
		}
	}
}

// isAs reports whether the set has these objects already.
func (s *Set) isAs(all map[part][]*engine.Object) bool {
	for p, list := range s.all {
		if !slices.Equal(list, all[p]) {
			return false
		}
	}
	for p := range all {
		if _, ok := s.all[p]; !ok {
			return false
		}
	}
	return true
}

func byName(o *engine.Object, name string) int { return strings.Compare(o.Name, name) }

// Get returns an object, or nil.
func (s *Set) Get(k engine.ObjectKey) *engine.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := s.all[part{k.Kind, k.App}]
	if i, ok := slices.BinarySearchFunc(list, k.Name, byName); ok {
		return list[i]
	}
	return nil
}

// List returns the objects of a kind and an app, in the order of their names.
func (s *Set) List(kind, app string) []*engine.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.all[part{kind, app}])
}

// Page returns the objects of a kind and an app whose names are greater than after, in the
// order of their names; limit of them at most.
func (s *Set) Page(kind, app, after string, limit int) []*engine.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := s.all[part{kind, app}]
	from, ok := slices.BinarySearchFunc(list, after, byName)
	if ok {
		from++
	}
	return slices.Clone(list[from:min(from+max(limit, 0), len(list))])
}

// Apps returns the apps that have objects of a kind, in order.
func (s *Set) Apps(kind string) (apps []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for p, list := range s.all {
		if p.kind == kind && len(list) > 0 {
			apps = append(apps, p.app)
		}
	}
	slices.Sort(apps)
	return apps
}

// Count returns how many objects of a kind all apps have.
func (s *Set) Count(kind string) (n int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for p, list := range s.all {
		if p.kind == kind {
			n += len(list)
		}
	}
	return n
}

// replace makes next the object of a key; nil: there is none.
func (s *Set) replace(k engine.ObjectKey, next *engine.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := part{k.Kind, k.App}
	list := s.all[p]
	i, ok := slices.BinarySearchFunc(list, k.Name, byName)
	switch {
	case ok && next != nil:
		list[i] = next
	case ok:
		list = slices.Delete(list, i, i+1)
		s.countOne(k, -1)
	case next != nil:
		list = slices.Insert(list, i, next)
		s.countOne(k, +1)
	}
	s.all[p] = list
}

func (s *Set) countOne(k engine.ObjectKey, n int) {
	if !s.kind(k).Uncounted {
		s.of[k.App] += n
	}
}

// changed tells the package of a kind that an object was changed.
func (s *Set) changed(k engine.ObjectKey) {
	if kind := s.kind(k); kind.Changed != nil {
		kind.Changed(k)
	}
}

// kind is the kind of a key, zero if it is not registered.
func (s *Set) kind(k engine.ObjectKey) Kind {
	for _, kind := range s.kinds {
		if kind.Name == k.Kind {
			return kind
		}
	}
	return Kind{Name: k.Kind}
}
