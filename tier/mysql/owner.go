package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
)

var _ engine.Shared = (*Store)(nil)

// heirWaits is how long a process waits between its claim and its Take. The former owner
// begins no call 1.2 s after the claim, whether it sees the claim or is stopped
// (engine/process.Ownership); if it sees the claim, the rest is time for its calls in
// flight and its last settle.
const heirWaits = 3 * time.Second

// owner is the row of the table owner:
//
//	claim   heir = the new process               the former one sees that within 400 ms, begins no
//	                                             call any more, settles, and closes: ended = 1
//	take    process, folder = those of the heir  once ended = 1, or after heirWaits, with the fences
//
// So what the former process called is settled when the new one reads the tables, but
// for calls in flight, unless the former one was stopped, or has no connection.
//
// While nodes share the database the row has no process, and ended is 1: a Join ends the life
// of a process that has the shards (Members.succeed), and a Take ends those of the nodes if
// they are silent.
type owner struct {
	process, folder, heir string
	ended                 bool
}

const selectOwner = "SELECT process,folder,ended,heir FROM owner WHERE one=1"

func readOwner(into *owner) func(*sql.Rows) error {
	return func(rows *sql.Rows) error { return rows.Scan(&into.process, &into.folder, &into.ended, &into.heir) }
}

func lockOwner(t *transaction) (o owner, err error) {
	err = t.scan(selectOwner+" FOR UPDATE", readOwner(&o))
	return o, err
}

// callsNoMore reports whether the owner begins no call any more: it has said so, or it had
// the data directory, which is locked by this process now. Or it is this process.
func (o *owner) callsNoMore(s *Store) bool {
	return o.ended || o.process == s.process || o.folder != "" && o.folder == s.cfg.Folder
}

// isNobody reports whether no process has taken the shards without nodes.
func (o *owner) isNobody() bool { return o.process == "" && o.ended }

// newProcess makes a word for this process.
func newProcess() string { return rand.Text() }

// claim makes this process the heir, and waits until the owner calls no more.
func (s *Store) claim(ctx context.Context) error {
	free := false
	err := s.transact(ctx, "claim the shards", func(t *transaction) error {
		o, err := lockOwner(t)
		if err != nil {
			return err
		}
		if free = o.callsNoMore(s); free {
			return errNothing
		}
		return t.run("UPDATE owner SET heir=" + s.quoted())
	})
	for claimed := time.Now(); err == nil && !free && time.Since(claimed) < s.heirWaits; {
		if err := s.rest(ctx); err != nil {
			return err
		}
		var o owner
		err = s.read(ctx, "look whether the shards are free", func(ctx context.Context) error {
			return s.scan(ctx, selectOwner, readOwner(&o))
		})
		if free = o.ended; err == nil && o.heir != s.process {
			err = errTaken
		}
	}
	return err
}

// inherit makes this process the owner. If another claimed or took the shards meanwhile,
// it ends the transaction.
func (s *Store) inherit(t *transaction) error {
	o, err := lockOwner(t)
	if err != nil {
		return err
	}
	if o.heir != s.process && !o.callsNoMore(s) {
		return errTaken
	}
	b := append(t.buf[:0], "UPDATE owner SET ended=0,heir='',process="...)
	b = append(b, s.quoted()...)
	return t.run(string(appendBytes(append(b, ",folder="...), s.cfg.Folder)))
}

func (s *Store) quoted() string { return string(appendBytes(nil, s.process)) }

// Owns implements engine.Shared, over a connection of its own.
func (s *Store) Owns(ctx context.Context) error {
	var o owner
	err := s.readWithin(ctx, s.patience, "see whether the shards are still this process's", func(ctx context.Context) error {
		return scan(ctx, s.asks, selectOwner, readOwner(&o))
	})
	if err == nil && (o.process != s.process || o.heir != "" && o.heir != s.process) {
		err = errTaken
	}
	return err
}

// leave notes that this process begins no call any more. If that cannot be noted, the next
// one waits.
func (s *Store) leave() {
	if s.life.Load() == nil {
		return
	}
	_ = s.try(context.Background(), time.Second, "note the end", func(ctx context.Context) error {
		_, err := s.db.ExecContext(ctx, "UPDATE owner SET ended=1 WHERE process="+s.quoted())
		return err
	})
}

// succeed ends the life of a process that has the shards without nodes, once it begins no
// call any more, and frees the shards.
func (m *Members) succeed(ctx context.Context) error {
	for {
		isOver := false
		err := m.store.transact(ctx, "succeed the owner of the shards", func(t *transaction) error {
			o, err := lockOwner(t)
			if err != nil {
				return err
			}
			waited := m.hasWaited(&o)
			isOver = waited || o.isNobody()
			switch {
			case o.isNobody(), !waited && o.heir != "":
				return errNothing
			case !waited:
				return t.run("UPDATE owner SET heir=" + m.store.quoted())
			}
			if err := endAll(t); err != nil {
				return err
			}
			for _, q := range []string{
				deleteFences,
				"UPDATE owner SET process='',folder='',heir='',ended=1",
				"UPDATE shards SET fence=fence+1,holder=0,heir='',clean=0,former=0",
			} {
				if err := t.run(q); err != nil {
					return err
				}
			}
			return countMove(t)
		})
		if err != nil || isOver {
			return err
		}
		if err := m.store.rest(ctx); err != nil {
			return err
		}
	}
}

// hasWaited reports whether the owner begins no call any more: it has said so, or it was to
// end for so long. Of many nodes that wait none is to begin anew when another one joins, so
// whose claim the owner sees does not matter.
func (m *Members) hasWaited(o *owner) bool {
	if o.callsNoMore(m.store) {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.heir == "" {
		m.waits.since = time.Time{}
		return false
	}
	if m.waits.since.IsZero() || m.waits.process != o.process {
		m.waits.process, m.waits.since = o.process, time.Now()
	}
	return time.Since(m.waits.since) >= m.store.heirWaits
}

// pulses reads which lives the nodes have.
func pulses(ctx context.Context, from querier, tail string) (lives []engine.Pulse, err error) {
	err = scan(ctx, from, "SELECT name,life,beat FROM nodes WHERE life<>0 ORDER BY name"+tail, func(rows *sql.Rows) error {
		var p engine.Pulse
		err := rows.Scan(&p.Node, &p.Life, &p.Beat)
		lives = append(lives, p)
		return err
	})
	return lives, err
}

// silentNodes returns the lives of the nodes that share the database, when none of them has
// beaten for heirWaits. A node that lives beats far more often, and one that cannot beat
// begins no call any more by then (engine/cluster.Lease). It returns an error if one beats.
func (s *Store) silentNodes(ctx context.Context) (lives []engine.Pulse, err error) {
	look := func() (lives []engine.Pulse, err error) {
		err = s.read(ctx, "look which nodes share the database", func(ctx context.Context) error {
			lives, err = pulses(ctx, s.db, "")
			return err
		})
		return lives, err
	}
	if lives, err = look(); err != nil || len(lives) == 0 {
		return nil, err
	}
	for began := time.Now(); time.Since(began) < s.heirWaits; {
		asked := time.Now()
		if err := s.rest(ctx); err != nil {
			return nil, err
		}
		now, err := look()
		if err != nil {
			return nil, err
		}
		if err := refuseNodes(now, lives); err != nil {
			return nil, err
		}
		if time.Since(asked) > s.heirWaits/4 { // the database was away, for the nodes too
			began = time.Now()
		}
	}
	return lives, nil
}

// refuseNodes returns an error if there are lives that are not among the silent.
func refuseNodes(lives, silent []engine.Pulse) error {
	for _, p := range lives {
		if !slices.Contains(silent, p) {
			return &engine.Fault{
				Kind: engine.FaultUnavailable, Code: "nodes_share_database",
				Detail: fmt.Sprintf("node %s of a cluster runs on this database: stop all nodes before you start a server without them", p.Node),
			}
		}
	}
	return nil
}

// endNodes ends the lives of nodes in the transaction of a Take, if they are silent still.
func endNodes(t *transaction, silent []engine.Pulse) error {
	lives, err := pulses(t.ctx, t.tx, " FOR UPDATE")
	if err != nil || len(lives) == 0 {
		return err
	}
	if err := refuseNodes(lives, silent); err != nil {
		return err
	}
	if err := t.run("UPDATE nodes SET life=0 WHERE life<>0"); err != nil {
		return err
	}
	return countMove(t)
}

// rest waits between two looks at a former owner, or at the nodes.
func (s *Store) rest(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.heirWaits / 60):
		return nil
	}
}
