package mysql

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// calls are all calls of the tier that need the database.
func calls(t *testing.T, s *Store) map[string]func() error {
	ctx, k := t.Context(), engine.Key{Timer: 1, Due: benchNow}
	return map[string]func() error{
		"Apply":        func() error { _, err := s.Apply(ctx, create(shot(77, "away"))); return err },
		"ApplyAll":     func() error { return s.ApplyAll(ctx, []*engine.Change{create(shot(78, "away2"))})[0].Err },
		"Timer":        func() error { _, err := s.Timer(ctx, 1); return err },
		"TimerByName":  func() error { _, err := s.TimerByName(ctx, "a", "n"); return err },
		"Load":         func() error { _, err := s.Load(ctx, []engine.TimerID{1}); return err },
		"Timers":       func() error { _, _, err := s.Timers(ctx, engine.TimerFilter{}, "", 10); return err },
		"Versions":     func() error { _, err := s.Versions(ctx, 1, 0, 10); return err },
		"Lives":        func() error { _, err := s.Lives(ctx, 0, 10); return err },
		"Counts":       func() error { _, err := s.Counts(ctx); return err },
		"Due":          func() error { return s.Due(ctx, engine.AllShards, 0, 1, func([]engine.Candidate) error { return nil }) },
		"Raise":        func() error { return s.Raise(ctx, []engine.Bound{{ID: 1, Version: 1, Due: 5}}) },
		"Raise, ended": func() error { return s.Raise(ctx, []engine.Bound{{ID: 1, Version: 1, Finished: true}}) },
		"Owed":         func() error { return s.Owed(ctx, engine.AllShards, 0, 1, func([]engine.Owed) error { return nil }) },
		"OwedPage":     func() error { _, err := s.OwedPage(ctx, 1, -1, 10); return err },
		"Shards":       func() error { _, err := s.Shards(ctx); return err },
		"Take":         func() error { _, _, err := s.Take(ctx, "n"); return err },
		"Settle":       func() error { return s.Settle(ctx, &engine.Settlement{Tasks: []engine.Record{succeeded(k)}}) },
		"Task":         func() error { _, err := s.Task(ctx, k); return err },
		"Tasks":        func() error { _, _, err := s.Tasks(ctx, engine.TaskFilter{}, engine.Key{}, 10); return err },
		"LastTask":     func() error { _, err := s.LastTask(ctx, 1); return err },
		"Sweep":        func() error { _, err := s.Sweep(ctx, benchNow, 0, 0); return err },
	}
}

// all makes all calls at once and wants the same kind of error of each.
func all(t *testing.T, s *Store, want error) {
	t.Helper()
	var wg sync.WaitGroup
	for name, call := range calls(t, s) {
		wg.Go(func() {
			if err := call(); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			} else if !strings.Contains(err.Error(), "cannot ") && !strings.Contains(err.Error(), "has not taken") {
				t.Errorf("%s does not say what could not be done: %v", name, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("a call hangs")
	}
}

// works waits until the tier does again.
func works(t *testing.T, s *Store) {
	t.Helper()
	patient(t, "the tier works again", func() bool {
		return s.Settle(t.Context(), &engine.Settlement{Owner: "n", Tasks: []engine.Record{succeeded(engine.Key{Timer: 1, Due: benchNow})}}) == nil
	})
	for name, call := range calls(t, s) {
		patient(t, name, func() bool { return !errors.Is(call(), engine.ErrUnavailable) })
	}
}

// TestAway: every call ends, and says that the tier is unavailable: when the
// server is gone, when it is stopped, when the network hangs.
func TestAway(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t)
	proxy := servertest.NewProxy(t, server.Addr())
	dsn := strings.Replace(server.DSN("x"), server.Addr(), proxy.Addr(), 1)
	s := New(Config{DSN: dsn + "?timeout=1s&readTimeout=1s&writeTimeout=1s"})
	s.patience = 3 * time.Second
	open(t, s)
	works(t, s)

	server.Pause() // which takes a moment
	patient(t, "the server is stopped", func() bool { _, err := s.Counts(t.Context()); return err != nil })
	all(t, s, engine.ErrUnavailable)
	server.Resume()
	works(t, s)

	proxy.Hang()
	all(t, s, engine.ErrUnavailable)
	if err := New(Config{DSN: s.cfg.DSN}).Open(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("opened: %v", err)
	}
	proxy.Heal()
	works(t, s)

	proxy.SwallowReplies(true)
	all(t, s, engine.ErrUnavailable)
	proxy.Heal()
	works(t, s)

	server.Kill()
	all(t, s, engine.ErrUnavailable)
	server.Start()
	works(t, s)
}

// TestReadOnly: a server that lost the writes is given up; one that has them
// again is used.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t)
	s := open(t, New(Config{DSN: server.DSN("x")}))
	server.Do("SET GLOBAL read_only=1")
	_, err := s.Apply(t.Context(), create(shot(1, "a")))
	var f *engine.Fault
	if !errors.Is(err, engine.ErrUnavailable) || !errors.As(err, &f) || f.Code != "tier_unavailable" ||
		!strings.HasPrefix(f.Detail, "MySQL is read-only") || !strings.Contains(err.Error(), "Error 1290") {
		t.Fatalf("%v; the caller is told %+v", err, f)
	}
	if err := s.Settle(t.Context(), &engine.Settlement{Tasks: []engine.Record{succeeded(engine.Key{Timer: 1, Due: 1})}}); !errors.Is(err, engine.ErrUnavailable) {
		t.Fatal(err)
	}
	if _, err := s.Counts(t.Context()); err != nil {
		t.Fatalf("it can be read: %v", err)
	}
	server.Do("SET GLOBAL read_only=0")
	mustApply(t, s, create(shot(1, "a")))
}

// TestReadOnlyConnection: a connection whose server refuses a write, in any of the
// three ways of writing, is not used again: the next may lead to another server.
func TestReadOnlyConnection(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t)
	s := open(t, New(Config{DSN: server.DSN("x")}))
	for way, write := range map[string]func(*sql.Tx, func()) error{
		"statement": func(tx *sql.Tx, turn func()) error {
			turn()
			_, err := tx.Exec("DELETE FROM owed")
			return err
		},
		"prepared": func(tx *sql.Tx, turn func()) error {
			st, err := tx.Prepare("DELETE FROM owed WHERE due=?")
			if err != nil {
				return err
			}
			turn()
			_, err = st.Exec(1)
			return err
		},
		"locking read": func(tx *sql.Tx, turn func()) error {
			turn()
			rows, err := tx.Query("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO=1290") // as replicas of some clusters answer it
			if err == nil {
				rows.Close()
			}
			return err
		},
		"commit": func(tx *sql.Tx, turn func()) error {
			if _, err := tx.Exec("INSERT INTO owed (timer,due,`until`,not_before,row_bytes) VALUES (1,1,0,1,'')"); err != nil {
				return err
			}
			turn()
			return tx.Commit()
		},
	} {
		t.Run(way, func(t *testing.T) {
			p, err := connect(s.cfg.DSN)
			if err != nil {
				t.Fatal(err)
			}
			defer p.close()
			db := p.db
			db.SetMaxOpenConns(1)
			session := func() (id int) {
				if err := db.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
					t.Fatal(err)
				}
				return id
			}
			before := session()
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			err = write(tx, func() { server.Do("SET GLOBAL read_only=1") })
			_ = tx.Rollback()
			server.Do("SET GLOBAL read_only=0")
			if number(err) != 1290 {
				t.Fatalf("the server said: %v", err)
			}
			if session() == before {
				t.Error("the connection is used again")
			}
		})
	}
}

// TestCrashes: the server dies again and again while timers are made. What was
// acknowledged is there, once; of the rest it is known after the next settle
// whether it is, and that stays.
func TestCrashes(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t)
	s := open(t, New(Config{DSN: server.DSN("x")}))
	const rounds, writers = 3, 8
	acked, doubtful := map[engine.TimerID]bool{}, map[engine.TimerID]bool{}
	next := engine.TimerID(0)
	var mu sync.Mutex
	for range rounds {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					mu.Lock()
					next++
					id := next
					mu.Unlock()
					_, err := s.Apply(t.Context(), create(shot(id, fmt.Sprint("n", id))))
					mu.Lock()
					if err == nil {
						acked[id] = true
					} else {
						doubtful[id] = true
						if !errors.Is(err, engine.ErrUnavailable) {
							t.Errorf("timer %d: %v", id, err)
						}
					}
					mu.Unlock()
				}
			})
		}
		before := len(acked)
		patient(t, "some timers are made", func() bool { mu.Lock(); defer mu.Unlock(); return len(acked) > before+100 })
		server.Kill()
		close(stop)
		wg.Wait()
		server.Start()
	}
	patient(t, "a settle", func() bool { return s.Settle(t.Context(), &engine.Settlement{Owner: "n"}) == nil })
	there := map[engine.TimerID]bool{}
	for cursor := ""; ; {
		ts, n, err := s.Timers(t.Context(), engine.TimerFilter{}, cursor, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range ts {
			there[x.ID] = true
		}
		if cursor = n; n == "" {
			break
		}
	}
	for id := range acked {
		if !there[id] {
			t.Errorf("timer %d was acknowledged and is lost", id)
		}
	}
	for id := range there {
		if !acked[id] && !doubtful[id] {
			t.Errorf("timer %d was refused and is there", id)
		}
	}
	if n, err := s.Counts(t.Context()); err != nil || int(n.Enabled) != len(there) {
		t.Errorf("%+v, %v: there are %d", n, err, len(there))
	}
	t.Logf("%d acknowledged, %d not, %d of them there", len(acked), len(doubtful), len(there)-len(acked))
}
