// Package mysql is the shared cold tier: definitions, progress and history on
// MariaDB ≥ 10.6, MySQL ≥ 8.0, or what speaks their protocol.
//
// Creates and changes that arrive while a commit runs share the next one
// (queue.go, group.go); a settlement is one transaction behind its fences
// (settle.go); history lies in partitions, one a day (partition.go). Readers
// page by keys and hold no connection between two pages.
//
// A transaction is repeated when it lost a race, and when its commit got no
// answer it is first found out whether it was made (transaction.go). A database
// that is away ends every call in engine.ErrUnavailable: creates, changes and
// lookups of one timer within five seconds, what works in the background within
// ten or fifteen.
//
// DESIGN.md has the tables, who writes them, and the measurements.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

var _ engine.Cold = (*Store)(nil)

// Config of a store.
type Config struct {
	// DSN is the database in the words of go-sql-driver/mysql:
	// user:password@tcp(host:port)/database. What this package relies on is set
	// over it; timeouts given in it stand.
	DSN string
	// Folder is the identity of a data directory that is locked by this process, so that a
	// former process that had it is known to be over; "": there is none.
	Folder string
	// SampleSuccesses keeps one in so many records of calls that succeeded at
	// once; 0 and 1 keep all. Everything else is always kept.
	SampleSuccesses int
}

// Store is the shared cold tier.
type Store struct {
	cfg     Config
	pools               // set by Open
	opened  atomic.Bool // they may be used
	process string      // of this store, in the table owner
	inserts *inserts
	queue   queue
	work    sync.WaitGroup // the committers
	doubts  doubts
	days    partitions
	walks   walks
	slots   int64                // of the tables counts and fences: the first of this store's
	id      uint64               // of its life
	life    atomic.Pointer[life] // that began with Take; nil: it took nothing
	// marked has for each shard a watermark that was stored. A database with a lower one
	// went back.
	marked [engine.Shards]atomic.Int64
	newest newest
	// patience bounds every call, retries and all; answer, how long who makes or
	// looks for one timer waits: somebody waits for that at the other end.
	patience, answer time.Duration
	heirWaits        time.Duration // see there
	// pageBytes is how much the definitions of a page of Due should have, see there.
	pageBytes int
	// clock is the latest instant heard of in what was written (Unix ms): it
	// never reads the wall clock.
	clock atomic.Int64
}

// committers is how many groups may be on their way at once: while one waits
// for the disk another is judged. With more the groups get smaller, and each
// costs its statements: of 64 callers one committer took 42 µs of the server for
// a create, two 61, three 70, six 89; two were the fastest.
const committers = 2

// New builds a store; Open touches the network.
func New(cfg Config) *Store {
	return &Store{
		cfg: cfg, process: newProcess(), id: 1 + rand.Uint64N(math.MaxUint64), heirWaits: heirWaits,
		patience: 10 * time.Second, answer: 4 * time.Second, pageBytes: 16 << 20,
	}
}

// Open connects, brings the schema up to date and starts the committers.
func (s *Store) Open(ctx context.Context) (err error) {
	if s.pools, err = connect(s.cfg.DSN); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if err := s.migrate(ctx); err != nil {
		return s.fault(ctx, "bring the database up to date", err)
	}
	s.inserts = newInserts()
	if err := s.try(ctx, s.patience, "prepare its statements", func(ctx context.Context) error { return s.inserts.prepare(ctx, s.db) }); err != nil {
		return err
	}
	s.opened.Store(true)
	shards, err := s.Shards(ctx)
	if err != nil {
		return err
	}
	for _, sh := range shards {
		s.heard(sh.Watermark)
	}
	err = s.read(ctx, "look for the newest id", func(ctx context.Context) error {
		_, err := s.newest.read(ctx, s.db)
		return err
	})
	if err != nil {
		return err
	}
	s.slots = rand.Int64N(slotsMade)
	s.queue.open()
	for i := range int64(committers) {
		s.work.Go(func() { s.commitLoop(i + 1) })
	}
	return nil
}

// Close takes no more changes, answers what was taken, notes that this process calls no
// more, and disconnects.
func (s *Store) Close() error {
	if !s.opened.Load() {
		return nil
	}
	s.queue.close()
	s.work.Wait()
	s.leave()
	return s.release()
}

func (s *Store) release() error {
	s.opened.Store(false)
	return s.pools.close() // who reads yet is told so by them
}

// heard notes an instant that was written.
func (s *Store) heard(at int64) {
	for {
		was := s.clock.Load()
		if at <= was || s.clock.CompareAndSwap(was, at) {
			return
		}
	}
}

// Backup is the database's own business.
func (s *Store) Backup(context.Context, string) error {
	return &engine.Fault{
		Kind: engine.FaultInvalid, Code: "backup_of_database",
		Detail: "timers and history are in a shared database: back it up with its own tools (mariadb-dump or mysqldump with --single-transaction, " +
			"mariabackup, a snapshot of the volume)",
	}
}

// read runs f, which only reads, and again when its connection failed.
func (s *Store) read(ctx context.Context, what string, f func(context.Context) error) error {
	return s.readWithin(ctx, s.patience, what, f)
}

func (s *Store) readWithin(ctx context.Context, d time.Duration, what string, f func(context.Context) error) error {
	if !s.opened.Load() { // the API answers from the start of the process on
		return fmt.Errorf("cannot %s: %w: %w", what, errNotOpen, engine.ErrUnavailable)
	}
	return s.try(ctx, d, what, f)
}

// try is readWithin of a store that is being opened as well.
func (s *Store) try(ctx context.Context, d time.Duration, what string, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var err error
	for try := range tries {
		if err = pause(limited, try); err != nil {
			break
		}
		if err = f(limited); err == nil || !again(err) {
			break
		}
	}
	return s.fault(ctx, what, err)
}

// scan reads all rows of a query; each is called with the row to Scan from.
func (s *Store) scan(ctx context.Context, query string, each func(*sql.Rows) error) error {
	return scan(ctx, s.db, query, each)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func scan(ctx context.Context, from querier, query string, each func(*sql.Rows) error) error {
	rows, err := from.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// damaged is the error of a row that does not decode.
func damaged(table string, id any, err error) error {
	return &engine.Damage{Row: fmt.Sprintf("the row %v of %s", id, table), Err: err}
}
