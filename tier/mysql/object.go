package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"xtimer/engine"
)

// PutObject stores an object in place of the version was. A transaction that is repeated
// finds the object stored.
func (s *Store) PutObject(ctx context.Context, o *engine.Object, was uint32) error {
	return s.write(ctx, "store an object", slotObjects, func(t *transaction) error {
		stands, err := lockObject(t, o.ObjectKey)
		if err != nil {
			return err
		}
		if done, err := engine.JudgePut(o, stands, was); done || err != nil {
			return ended(done, err)
		}
		if stands != nil {
			b := append(t.buf[:0], "UPDATE objects SET object="...)
			b = appendBytes(b, engine.AppendObject(nil, o))
			return t.run(string(appendObjectKey(b, o.ObjectKey)))
		}
		b := append(t.buf[:0], "INSERT INTO objects (kind,app,name,object) VALUES ("...)
		for _, part := range []string{o.Kind, o.App, o.Name} {
			b = append(appendBytes(b, part), ',')
		}
		return t.run(string(append(appendBytes(b, engine.AppendObject(nil, o)), ')')))
	})
}

// DeleteObject deletes the version was of an object.
func (s *Store) DeleteObject(ctx context.Context, k engine.ObjectKey, was uint32) error {
	return s.write(ctx, "delete an object", slotObjects, func(t *transaction) error {
		stands, err := lockObject(t, k)
		if err != nil {
			return err
		}
		if done, err := engine.JudgeDelete(stands, was); done || err != nil {
			return ended(done, err)
		}
		return t.run(string(appendObjectKey(append(t.buf[:0], "DELETE FROM objects"...), k)))
	})
}

// ended ends a transaction that has nothing to write.
func ended(done bool, err error) error {
	if done {
		return errNothing
	}
	return err
}

// lockObject reads an object as it stands, or nil, and locks its row.
func lockObject(t *transaction, k engine.ObjectKey) (found *engine.Object, err error) {
	q := string(appendObjectKey([]byte("SELECT object FROM objects"), k)) + " FOR UPDATE"
	err = t.scan(q, func(rows *sql.Rows) error {
		var b []byte
		err := rows.Scan(&b)
		o := engine.ReadObject(k, b)
		found = &o
		return err
	})
	return found, err
}

// appendObjectKey appends the condition that selects one object.
func appendObjectKey(b []byte, k engine.ObjectKey) []byte {
	b = appendBytes(append(b, " WHERE kind="...), k.Kind)
	b = appendBytes(append(b, " AND app="...), k.App)
	return appendBytes(append(b, " AND name="...), k.Name)
}

// objectPage is how many objects, of 64 KiB each at most, one statement reads.
const objectPage = 100

// Objects pages through all objects in the order of their keys.
func (s *Store) Objects(ctx context.Context, yield func([]engine.Object) error) error {
	where := ""
	for {
		var page []engine.Object
		q := fmt.Sprintf("SELECT kind,app,name,object FROM objects%s ORDER BY kind,app,name LIMIT %d", where, objectPage)
		err := s.read(ctx, "read the objects", func(ctx context.Context) error {
			page = page[:0]
			return s.scan(ctx, q, func(rows *sql.Rows) error {
				var k engine.ObjectKey
				var b []byte
				err := rows.Scan(&k.Kind, &k.App, &k.Name, &b)
				page = append(page, engine.ReadObject(k, b))
				return err
			})
		})
		if err != nil || len(page) == 0 {
			return err
		}
		last, read := page[len(page)-1].ObjectKey, len(page)
		if err := yield(page); err != nil || read < objectPage {
			return err
		}
		kind, app, name := string(appendBytes(nil, last.Kind)), string(appendBytes(nil, last.App)), string(appendBytes(nil, last.Name))
		where = fmt.Sprintf(" WHERE kind>%[1]s OR kind=%[1]s AND (app>%[2]s OR app=%[2]s AND name>%[3]s)", kind, app, name)
	}
}
