package change

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"xtimer/engine"
)

// TestBulkFile: what an operation is to do is read in parts, by the process that wrote it
// and by the next one.
func TestBulkFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "operations")
	var items []engine.Key
	for i := range 2500 {
		items = append(items, engine.Key{Timer: engine.TimerID(i + 1), Due: int64(3 * i)})
	}
	made, err := makeBulkFile(dir, bulkHeader{ID: "7", Action: DeleteAll, App: "a"}, items)
	if err != nil {
		t.Fatal(err)
	}
	whole := func(b *bulkFile) {
		t.Helper()
		var got []engine.Key
		for from := int64(0); from < 2500; from += 1000 {
			part, err := b.read(2500, from, min(from+1000, 2500))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, part...)
		}
		if !slices.Equal(got, items) {
			t.Errorf("%d items are read, and not those that were written", len(got))
		}
	}
	whole(made)
	if err := made.progress(1000, 3); err != nil {
		t.Fatal(err)
	}
	if err := made.close(false, dir, "7"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "7"+bulkSuffix)
	b, h, total, done, failed, err := openBulkFile(name)
	if err != nil || h.App != "a" || h.Action != DeleteAll || total != 2500 || done != 1000 || failed != 3 {
		t.Fatalf("%+v, %d, %d, %d, %v", h, total, done, failed, err)
	}
	whole(b)
	if err := b.close(false, dir, "7"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 10, 20, 30, len(raw) - 1, len(raw) - 1600*bulkItem} {
		if err := os.WriteFile(name, raw[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, _, _, _, err := openBulkFile(name); err == nil {
			t.Errorf("%d bytes of %d are taken for an operation", n, len(raw))
		}
	}
}

// TestOperationsKept: an operation that goes on can be looked up, whatever ends meanwhile.
func TestOperationsKept(t *testing.T) {
	o := newOperations()
	o.enter(Operation{ID: "long"})
	for i := range 3 * operationsKept {
		o.enter(Operation{ID: strconv.Itoa(i), Ended: true})
	}
	if o.byID["long"] == nil || len(o.order) != operationsKept || len(o.byID) != operationsKept {
		t.Errorf("%d operations are kept, and the one that goes on is among them: %v", len(o.order), o.byID["long"] != nil)
	}
}

// A client that was told of an operation under way asks for the operation where that was told, also at a node that has
// no shards. Nothing is kept of an operation without shards that has ended.
func TestPartWithoutShards(t *testing.T) {
	for _, ended := range []bool{false, true} {
		e := &Maker{operations: newOperations()}
		e.NoteEmpty(Operation{ID: "7", Started: time.Now(), Ended: ended}, engine.Set{})
		if _, ok := e.Operation("7"); ok == ended {
			t.Errorf("ended %v: known %v", ended, ok)
		}
	}
}
