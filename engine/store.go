package engine

import "context"

// Cold is the authoritative tier: definitions, progress and history. tier/local
// (Pebble, embedded) and tier/mysql implement Cold; tier/tiertest tests its promises.
//
// All methods may be called by many goroutines. A write that returned nil is
// durable and visible to every later read. Times are Unix ms.
type Cold interface {
	// Open touches the disk or the network; Close ends what Open began.
	Open(ctx context.Context) error
	Close() error

	// Apply makes one change of one timer, atomically and durably. Concurrent
	// calls share a commit. Applied describes the outcomes.
	Apply(ctx context.Context, c *Change) (Applied, error)
	// ApplyAll makes many independent changes, in one commit if possible. It
	// returns the outcomes in order. An error of the whole call is in every outcome.
	ApplyAll(ctx context.Context, cs []*Change) []Applied

	// Timer returns the current version of a timer, or ErrNotFound.
	Timer(ctx context.Context, id TimerID) (*Timer, error)
	TimerByName(ctx context.Context, app, name string) (*Timer, error)
	// Load reads many encoded definitions (DecodeTimer reads them), as they are
	// carried (AppendCarried), in the order of ids; a missing one is nil, and one that is
	// damaged does not decode. The bytes are the caller's to keep.
	Load(ctx context.Context, ids []TimerID) ([][]byte, error)
	// Timers lists timers by keyset; after is the cursor of the previous page, "" for the first page.
	Timers(ctx context.Context, f TimerFilter, after string, limit int) (ts []*Timer, next string, err error)
	// Versions lists former versions of a timer, newest first, for as long as
	// history is kept, or a row of the timer is owed: those before a version (0: all).
	// A deleted timer's last version is among them.
	Versions(ctx context.Context, id TimerID, before uint32, limit int) ([]*Timer, error)
	// Lives pages, in the order of ids, through every timer that stands or has
	// a version kept: those with an id greater than after, limit of them at most;
	// a damaged one fails the page (*Damage, with its id if the limit is 1). Of large
	// versions it has the heads, as they are carried.
	Lives(ctx context.Context, after TimerID, limit int) ([]Life, error)
	// Counts returns the number of timers by stored status.
	Counts(ctx context.Context) (Counts, error)

	// Due pages through every enabled timer of the shards that may have a due in
	// (from, to]; yield is called with a page at a time and must not keep it.
	// Due may yield timers without such a due, because its index holds lower bounds, and
	// definitions that are damaged, which do not decode.
	// It never omits a timer that has one if from ≥ the watermark of the timer's shard.
	Due(ctx context.Context, of Set, from, to int64, yield func([]Candidate) error) error
	// Raise sets new lower bounds of next dues. It may be called only in or after
	// the settle that moved the watermark there. Raise is a hint: a tier may ignore it.
	Raise(ctx context.Context, bounds []Bound) error

	// Owed pages through the owed rows of the shards with NotBefore in (from, to], in any
	// order. In the three lists of rows, one that is damaged is listed too, see Owed.Damaged;
	// in this one also if it is not known whether it is of the time that was asked for.
	Owed(ctx context.Context, of Set, from, to int64, yield func([]Owed) error) error
	// Lanes lists the lanes that have an owed row of the shards with NotBefore ≤ to, in any
	// order.
	Lanes(ctx context.Context, of Set, to int64) ([]Lane, error)
	// OwedIn lists the owed rows of the shards in one lane with NotBefore ≤ to, in the order
	// of their places: those after a place (zero: from the first), limit of them at most.
	OwedIn(ctx context.Context, of Set, lane Lane, after Place, to int64, limit int) ([]Owed, error)
	// OwedPage lists the owed rows of one timer by due: those later than after, limit of
	// them at most.
	OwedPage(ctx context.Context, id TimerID, after int64, limit int) ([]Owed, error)

	// Shards reads fence and watermark of all shards, in order.
	Shards(ctx context.Context) ([]Shard, error)
	// Take takes all shards for a node: it advances the fence of each shard and
	// returns the resulting shards. A settle under a former fence returns ErrFenced.
	// Take may wait until the former owner calls no more, see Shared.
	//
	// newest is not less than the id of any timer that was ever created here, or
	// named by a settlement, also of those that were deleted or removed since: an
	// id above it was never used.
	Take(ctx context.Context, owner string) (shards []Shard, newest TimerID, err error)
	// Settle stores results and progress of this node, in one transaction.
	// Settle is idempotent; a Settle waits for another one, see Settlement.Beside. It returns ErrFenced and stores nothing if the fence of
	// a mark is not the current fence. The caller may reuse the lists afterwards;
	// the bytes of a record never change.
	Settle(ctx context.Context, s *Settlement) error

	// Task returns one record of history, or ErrNotFound.
	Task(ctx context.Context, k Key) (*Task, error)
	// Ranks returns the ranks of the records under keys, in their order; zero for none, and for
	// one that is damaged.
	Ranks(ctx context.Context, ks []Key) ([]Rank, error)
	// Taken reports for each of many ranges whether a due in [Key.Due, To] may have a record, or a
	// row that is no range. Few have, and Taken costs less than Tasks and OwedPage for each range.
	// A due whose row a settlement replaces by a record meanwhile is taken.
	Taken(ctx context.Context, ranges []Owed) ([]bool, error)
	// Tasks lists records older than before, newest first, by (due, timer); a zero
	// before means from the newest record on. A page has all selected records that
	// are not older than next; a zero next means the end. A page may be short or
	// empty and still have a next, because filters without an index scan in bounded
	// steps. A damaged record ends a page; one that begins a page is a *Damage.
	Tasks(ctx context.Context, f TaskFilter, before Key, limit int) (ts []*Task, next Key, err error)
	// LastTask returns the newest record of a timer, or ErrNotFound.
	LastTask(ctx context.Context, id TimerID) (*Task, error)
	// LeftOut returns the minutes of [from, to), in order, whose history is
	// incomplete: minutes that a settlement named, minutes with a success that was not
	// of the sample, and minutes dropped because of their size.
	LeftOut(ctx context.Context, from, to int64) (minutes []int64, err error)

	// Sweep does a bounded piece of housekeeping: archives finished one-shots,
	// removes finished timers older than finishedBefore with their names,
	// drops whole days of history older than historyBefore, and expired
	// idempotency keys. A day stays with a single due that is owed, and with a
	// record whose due lies in a range that is owed: the record alone tells that
	// the due is over. more tells that there is more to do.
	Sweep(ctx context.Context, now, finishedBefore, historyBefore int64) (more bool, err error)

	// PutObjects stores objects of different keys, 1 MiB at most: all of them or none. It
	// returns ErrConflict if another version than Was stands of one. What is stored already is
	// left, so a call whose outcome is not known can be repeated.
	PutObjects(ctx context.Context, puts ...ObjectPut) error
	// DeleteObjects deletes these versions of objects, hundreds at most: all of them or none. It
	// returns ErrConflict if another version of one stands. What does not stand is left.
	DeleteObjects(ctx context.Context, of ...*Object) error
	// Objects pages through all objects in the order of their keys, damaged ones too; yield
	// must not keep the page, but may keep what is in it.
	Objects(ctx context.Context, yield func([]Object) error) error

	// PutBuckets stores buckets of different names: all of them or none. A bucket that stands
	// under a greater fence stays.
	PutBuckets(ctx context.Context, bs []Bucket) error
	// Buckets reads the bodies of buckets, in the order of the names; nil: there is none.
	Buckets(ctx context.Context, names []string) ([][]byte, error)

	// Backup writes a consistent copy to a new folder.
	Backup(ctx context.Context, dir string) error
}

// Shared is a cold tier that another process may take over. tier/mysql implements Shared.
//
// There Take tells the former owner first, and waits until that one begins no call any
// more: until it is closed, or until what it was last told by Owns is too old.
type Shared interface {
	// Owns returns nil while the shards are those of the process that took them here,
	// and ErrFenced once another process took them, or waits in Take for them. Every
	// other error means that the tier could not be asked.
	Owns(ctx context.Context) error
}

// Revised is a cold tier whose objects other processes change too: tier/mysql and tier/memory.
type Revised interface {
	// ObjectsRevision returns a number that each change of an object changes. A caller that reads
	// the number first and the objects then has the present objects while the number is the same.
	ObjectsRevision(ctx context.Context) (uint64, error)
}

// Change of one timer: what stood before, what stands after, and what of its
// occurrences is decided by it, all in one transaction.
//
// Rows that it does not pay stay, also of a timer that it deletes: who finds one of a
// former generation, or of a timer that is gone, settles it as cancelled. Versions
// has the app and the name of the timer until then.
type Change struct {
	// Timer as it stands after; nil deletes.
	Timer *Timer
	ID    TimerID
	At    int64 // when it is made, Unix ms
	// Was is the version that must stand now; 0: the timer must not exist, and
	// neither must another with the same (app, name).
	Was uint32
	// Owe puts rows into owed; Pay removes them; Tasks are records of
	// occurrences that the change decides (cancelled ones).
	Owe   []Owed
	Pay   []Key
	Tasks []*Task
	// Once is the Idempotency-Key of a create; nil without.
	Once *Once
	// Size is about how many bytes the definition has that stands, as its maker has read it;
	// 0 for a create. A tier reads that again, and makes no more changes in one commit than
	// a bound of bytes allows.
	Size int
}

// Once makes a create idempotent. It is scoped by app and kept until Expires.
type Once struct {
	App, Key string
	Body     [32]byte // SHA-256 of the request's body
	Expires  int64    // Unix ms
}

// Applied is the outcome of a change.
//
// Err is nil when it was made; ErrNotFound or ErrConflict when another version
// stands; a *Fault with Code "idempotency_key_reused" when the key was used
// with another body. Existing is set when a create found the (app, name), or its
// Idempotency-Key, taken: then nothing was written, and Err is nil for a
// repeat by key and ErrConflict for a name.
type Applied struct {
	Existing *Timer
	Replayed bool // Existing was found by its Idempotency-Key
	Err      error
}

// Life is the stored history of a timer: its versions, oldest first, with the
// current version last. Deleted is the time of deletion (Unix ms), 0 if the timer exists.
type Life struct {
	ID       TimerID
	Versions []*Timer
	Deleted  int64
}

// Counts of timers by stored status.
type Counts struct{ Enabled, Disabled, Finished int64 }

// Candidate is a timer that may have a due in the window asked for.
type Candidate struct {
	ID TimerID
	// Due of a one-shot, exactly; for a recurring timer its lower bound.
	Due int64
	// Definition (encoded) of a recurring timer. Of a one-shot, whose due is
	// all that planning needs, a tier gives it when that costs nothing. As it is
	// carried, see AppendCarried.
	Definition []byte
}

// Bound is a new lower bound of a recurring timer's next due. It applies to one
// version of the timer and is ignored if another version is current.
type Bound struct {
	ID       TimerID
	Version  uint32
	Due      int64
	Finished bool // no due is left: the timer is to be archived
}

// Owed is an exception to the rule that what is not later than the watermark
// is finished: one due, or a range of them, that is not.
type Owed struct {
	Key Key
	// To ends a range of dues of the plan, from Key.Due to To, both included;
	// Endless: all from Key.Due on; 0: the single due Key.Due.
	To         int64
	Generation uint32
	Origin     Origin
	// Begun: an attempt may have been sent and its outcome is not known yet.
	Begun bool
	// NotBefore: when it may be tried (Unix ms).
	NotBefore int64
	// Lane that the row waits in; 0 for rows of a store from before there were lanes.
	Lane Lane
	// OneShot: the row owes the only due of a timer, and not a redrive or a run of it. A
	// start leaves such a row unread until its turn comes, see policy.MissedShot. False
	// in rows of former programs.
	OneShot bool
	// Held is for how long (ms) the task was held, so far as the row knows: if it is not 0, the due
	// is late by somebody's will, and no misfire.
	Held int64
	// Task as far as it got: its attempts and lateness. Nil for none.
	Task *Task
	// Damaged is set if the stored row cannot be read: then only Key is right, and Place
	// where OwedIn has found the row. Nobody knows whether the row stood for one due or for
	// a range, nor whether an attempt was begun. The row stays as it is stored, and may be
	// replaced or removed like any other; nobody stores one with Damaged set.
	Damaged *Damage
}

// Endless is Owed.To of a timer that is behind: its plan derives no due from Key.Due
// on, until it has caught up.
const Endless = MaxDue

// Shard is the progress of one shard.
type Shard struct {
	Fence     uint64 // moves on with each owner
	Owner     string
	Watermark int64 // Unix ms; 0 before the first settle
}

// Settlement is a batch of progress, see DESIGN in doc.go.
type Settlement struct {
	Owner string
	// Tasks are records of history, final or not, encoded by AppendTask; a
	// record replaces a former one of the same key.
	Tasks []Record
	// Owe is put into owed (replacing a row of the same key), Pay removed.
	Owe []Owed
	Pay []Key
	// Marks move watermarks (only forward).
	Marks []Mark
	// LeftOut are the minutes (their beginnings, Unix ms) with a due whose record
	// is left out for want of space: verify must not take it for lost. A tier that
	// keeps a sample of the successes adds those of the others.
	LeftOut []int64
	// Beside: the settlement does not wait for another one that is under way, nor for changes
	// whose commit is in doubt. It has no key of theirs, and no marks.
	Beside bool
	// Replayed: the records come from the journal of a former process and some
	// may be stored already; one with fewer attempts than the stored one is
	// dropped.
	Replayed bool
}

// Newest is the greatest id of the timers that the settlement stores something of;
// 0 for none. Only an import may bring one that the tier does not know.
func (s *Settlement) Newest() (id TimerID) {
	for i := range s.Tasks {
		id = max(id, s.Tasks[i].Key.Timer)
	}
	for i := range s.Owe {
		id = max(id, s.Owe[i].Key.Timer)
	}
	return id
}

// Record is one encoded task with what the tier needs for its indexes.
type Record struct {
	Key     Key
	Status  TaskStatus
	Encoded []byte
	// Alone: the key is that of the last due of a one-shot's definition, from
	// which a tier can find the record again; it needs no index by timer.
	Alone bool
	// Kept: the task had a row of owed, so an earlier record of it may be stored, or only
	// this one tells that its due is over. A tier that keeps a sample of the successes
	// keeps it.
	Kept bool
}

// Mark moves the watermark of one shard.
type Mark struct {
	Shard int
	Fence uint64
	W     int64
}

// Warm is the tier of the coming hour. For each minute it holds the timers that are
// due in the minute, with their first due. Warm is a cache: its loss costs speed,
// never a fire. tier/memory and tier/redis implement Warm.
type Warm interface {
	Open(ctx context.Context) error
	Close() error
	// Add puts entries into the buckets of their minutes; adding one twice is
	// the same as adding it once, and of two dues of a timer in one minute the
	// earlier stays.
	Add(ctx context.Context, es []Entry) error
	// Seal declares the minutes that begin in [from, to) complete for the shards: all
	// entries that the cold tier had for them were added. Seal returns ErrGap if some of
	// these entries were lost since; the caller must add them again.
	Seal(ctx context.Context, of Set, from, to int64) error
	// Load pages through the entries of the shards in the minute that begins at minute (Unix
	// ms): ErrGap when it was not sealed for all of them, or has lost what was sealed.
	Load(ctx context.Context, of Set, minute int64, yield func([]Entry) error) error
	// Update reports that the definition of a timer changed; nil means that the timer
	// was deleted. After Update returns, the tier returns the new definition or none,
	// even if its server is unreachable. An Add of entries that were read earlier does
	// not restore a former definition.
	Update(ctx context.Context, id TimerID, definition []byte)
	// Drop forgets the minutes that begin before the instant.
	Drop(ctx context.Context, before int64) error
	// Len is the number of entries, for the metrics and the auditor.
	Len() int
}

// Entry is one timer in one minute.
type Entry struct {
	ID  TimerID
	Due int64 // its first due in that minute, Unix ms
	// Definition is the encoded definition, as it is carried. A tier may keep it beside the
	// bucket; of two the one of the later version. nil: ask the cold tier.
	Definition []byte
}
