package mysql

import (
	"context"
	"database/sql"
	"fmt"
	mrand "math/rand/v2"
	"strconv"

	"xtimer/engine"
)

var _ engine.Revised = (*Store)(nil)

// PutObjects stores objects, each in place of the version Was: all of them or none. A
// transaction that is repeated finds the objects stored.
func (s *Store) PutObjects(ctx context.Context, puts ...engine.ObjectPut) error {
	of := make([]*engine.Object, len(puts))
	for i, p := range puts {
		of[i] = p.Object
	}
	return s.write(ctx, "store objects", slotObjects, func(t *transaction) error {
		stand, err := lockObjects(t, of)
		if err != nil {
			return err
		}
		var fresh, changed []engine.ObjectPut
		for _, p := range puts {
			found := stand[p.ObjectKey]
			switch done, err := engine.JudgePut(p, found); {
			case err != nil:
				return err
			case done:
			case found == nil:
				fresh = append(fresh, p)
			default:
				changed = append(changed, p)
			}
		}
		if len(fresh)+len(changed) == 0 {
			return errNothing
		}
		// Only rows that were found are locked. Another transaction may have inserted one that
		// was not found: then this insert fails, and the transaction is judged anew.
		if err := t.putObjects(fresh, ""); err != nil {
			return err
		}
		if err := t.putObjects(changed, " ON DUPLICATE KEY UPDATE object=VALUES(object)"); err != nil {
			return err
		}
		return reviseObjects(t)
	})
}

// reviseObjects changes the revision of the objects. It is the last statement of a transaction:
// the lock on the row, which all nodes share, then waits for nothing but the commit. The revision
// grows by a random number: where the database goes back, the one that a node knows does not come
// again for other objects.
func reviseObjects(t *transaction) error {
	return t.run(fmt.Sprintf("UPDATE objects_revision SET revision=revision+%d WHERE one=1", 1+mrand.Uint64N(1<<20)))
}

// ObjectsRevision returns a number that is another one after each change of an object.
func (s *Store) ObjectsRevision(ctx context.Context) (revision uint64, err error) {
	err = s.read(ctx, "ask whether objects were changed", func(ctx context.Context) error {
		return s.scan(ctx, "SELECT revision FROM objects_revision WHERE one=1", func(rows *sql.Rows) error { return rows.Scan(&revision) })
	})
	return revision, err
}

func (t *transaction) putObjects(puts []engine.ObjectPut, tail string) error {
	return t.many("INSERT INTO objects (kind,app,name,object) VALUES ", ",", tail, len(puts), func(b []byte, i int) []byte {
		b = append(appendNames(append(b, '('), puts[i].ObjectKey), ',')
		return append(appendBytes(b, engine.AppendObject(nil, puts[i].Object)), ')')
	})
}

var objectColumns = []string{"kind", "app", "name"}

// lockObjects reads the objects that stand under the keys of others, and locks their rows.
func lockObjects(t *transaction, of []*engine.Object) (map[engine.ObjectKey]*engine.Object, error) {
	stand := map[engine.ObjectKey]*engine.Object{}
	err := keyed(&t.buf, "SELECT t.kind,t.app,t.name,t.object FROM objects", objectColumns, " FOR UPDATE", len(of),
		func(b []byte, i int) []byte { return appendNames(b, of[i].ObjectKey) },
		func(q string) error {
			return t.scan(q, func(rows *sql.Rows) error {
				o, err := scanObject(rows)
				stand[o.ObjectKey] = &o
				return err
			})
		})
	return stand, err
}

func scanObject(rows *sql.Rows) (engine.Object, error) {
	var k engine.ObjectKey
	var b []byte
	err := rows.Scan(&k.Kind, &k.App, &k.Name, &b)
	return engine.ReadObject(k, b), err
}

// appendNames appends the columns of a key.
func appendNames(b []byte, k engine.ObjectKey) []byte {
	b = append(appendBytes(b, k.Kind), ',')
	b = append(appendBytes(b, k.App), ',')
	return appendBytes(b, k.Name)
}

// DeleteObjects deletes these versions of objects: all of them or none.
func (s *Store) DeleteObjects(ctx context.Context, of ...*engine.Object) error {
	return s.write(ctx, "delete objects", slotObjects, func(t *transaction) error {
		stand, err := lockObjects(t, of)
		if err != nil {
			return err
		}
		for _, o := range of {
			if _, err := engine.JudgeDelete(stand[o.ObjectKey], o.Version); err != nil {
				return err
			}
		}
		if len(stand) == 0 {
			return errNothing
		}
		err = t.keyed("DELETE t FROM objects", objectColumns, "", len(of), func(b []byte, i int) []byte { return appendNames(b, of[i].ObjectKey) })
		if err != nil {
			return err
		}
		return reviseObjects(t)
	})
}

// objectPage is how many objects, of 64 KiB each at most, one statement reads at most. Each node of a
// cluster reads all of them when one was changed.
const objectPage = 1000

// Objects pages through all objects in the order of their keys: after the first page, so many
// at a time as s.pageBytes have room for, by the size of those before.
func (s *Store) Objects(ctx context.Context, yield func([]engine.Object) error) error {
	where := ""
	for n := firstPage; ; {
		var page []engine.Object
		size := 0
		q := fmt.Sprintf("SELECT kind,app,name,object FROM objects%s ORDER BY kind,app,name LIMIT %d", where, n)
		err := s.read(ctx, "read the objects", func(ctx context.Context) error {
			page, size = page[:0], 0
			return s.scan(ctx, q, func(rows *sql.Rows) error {
				o, err := scanObject(rows)
				page, size = append(page, o), size+len(o.Body)
				return err
			})
		})
		if err != nil || len(page) == 0 {
			return err
		}
		last, read := page[len(page)-1].ObjectKey, len(page)
		if err := yield(page); err != nil || read < n {
			return err
		}
		n = min(max(s.pageBytes*read/max(size, 1), 10), objectPage)
		kind, app, name := string(appendBytes(nil, last.Kind)), string(appendBytes(nil, last.App)), string(appendBytes(nil, last.Name))
		where = fmt.Sprintf(" WHERE kind>%[1]s OR kind=%[1]s AND (app>%[2]s OR app=%[2]s AND name>%[3]s)", kind, app, name)
	}
}

// PutBuckets stores buckets, except those that stand under a greater fence: a transaction of
// a life that has given a shard away may be late.
func (s *Store) PutBuckets(ctx context.Context, bs []engine.Bucket) error {
	return s.write(ctx, "store buckets", slotBuckets, func(t *transaction) error {
		const tail = " ON DUPLICATE KEY UPDATE bucket=IF(VALUES(fence)>=fence,VALUES(bucket),bucket)," +
			"`until`=IF(VALUES(fence)>=fence,VALUES(`until`),`until`),fence=GREATEST(VALUES(fence),fence)"
		return t.many("INSERT INTO buckets (name,fence,`until`,bucket) VALUES ", ",", tail, len(bs), func(b []byte, i int) []byte {
			b = strconv.AppendUint(append(appendBytes(append(b, '('), bs[i].Name), ','), bs[i].Fence, 10)
			b = append(appendInt(append(b, ','), bs[i].Until), ',')
			return append(appendBytes(b, bs[i].Body), ')')
		})
	})
}

// Buckets reads the bodies of buckets.
func (s *Store) Buckets(ctx context.Context, names []string) ([][]byte, error) {
	bodies, at := make([][]byte, len(names)), make(map[string]int, len(names))
	for i, n := range names {
		at[n] = i
	}
	err := s.read(ctx, "read buckets", func(ctx context.Context) error {
		var buf []byte
		return many(&buf, "SELECT name,bucket FROM buckets WHERE name IN (", ",", ")", len(names), func(b []byte, i int) []byte {
			return appendBytes(b, names[i])
		}, func(q string) error {
			return s.scan(ctx, q, func(rows *sql.Rows) error {
				var name string
				var body []byte
				err := rows.Scan(&name, &body)
				if i, is := at[name]; is {
					bodies[i] = body
				}
				return err
			})
		})
	})
	return bodies, err
}

// forgetBuckets removes the buckets whose time is over.
func (s *Store) forgetBuckets(ctx context.Context, now int64) (more bool, err error) {
	var names []string
	err = s.read(ctx, "look for buckets whose time is over", func(ctx context.Context) error {
		names = nil
		return s.scan(ctx, fmt.Sprintf("SELECT name FROM buckets WHERE `until`<=%d LIMIT %d", now, sweepPiece), func(rows *sql.Rows) error {
			var n string
			err := rows.Scan(&n)
			names = append(names, n)
			return err
		})
	})
	if err != nil || len(names) == 0 {
		return false, err
	}
	err = s.write(ctx, "remove buckets whose time is over", slotSweep, func(t *transaction) error {
		tail := fmt.Sprintf(") AND `until`<=%d", now) // one may have been stored again
		return t.many("DELETE FROM buckets WHERE name IN (", ",", tail, len(names), func(b []byte, i int) []byte {
			return appendBytes(b, names[i])
		})
	})
	return len(names) == sweepPiece, err
}
