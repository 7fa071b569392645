package transfer

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	api "xtimer/httpapi/client"
	"xtimer/tier/memory"
)

// TestImportIsKilledAndRepeated: an import without history that was killed has told nothing of
// the minutes whose records are elsewhere; its repeat does.
func TestImportIsKilledAndRepeated(t *testing.T) {
	cold := memory.NewCold()
	now := time.Now().UnixMilli()
	const id = engine.TimerID(4711 << 30)
	take := func(records ...*item) *storeTarget {
		t.Helper()
		to := &storeTarget{cold: cold, earlier: newEarlier(), first: engine.MaxDue, recorded: now - time.Hour.Milliseconds()}
		if err := to.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		i := &item{}
		text := fmt.Sprintf(`{"app":"a","name":"n","schedule":{"every":"1s"},"callback":{"url":"http://127.0.0.1:9/"},`+
			`"stored":{"id":"%d","version":1,"generation":1,"status":"enabled","valid_from":%d,"anchor":%[2]d,"created_at":%[2]d,"updated_at":%[2]d,"finished_to":%d}}`,
			id, now-600_000, now-300_000)
		if err := i.read([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := to.take(t.Context(), []*item{i}); err != nil || i.result != api.Created && i.result != api.Unchanged {
			t.Fatal(i.result, i.why, err)
		}
		if err := to.take(t.Context(), records); err != nil {
			t.Fatal(err)
		}
		return to
	}
	leftOut := func() int {
		t.Helper()
		minutes, err := cold.LeftOut(t.Context(), 0, engine.MaxDue)
		if err != nil {
			t.Fatal(err)
		}
		return len(minutes)
	}

	take()
	if n := leftOut(); n != 0 {
		t.Fatalf("the killed import has told of %d minutes", n)
	}
	if err := take().leaveOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := leftOut(); n < 5 || n > 6 {
		t.Errorf("%d minutes are left out, want those of five minutes", n)
	}

	cold = memory.NewCold()
	take(&item{line: line{Record: recordLineOf(&engine.Task{
		Key: engine.Key{Timer: id, Due: now - 400_000}, App: "a", Name: "n", Status: engine.Succeeded, Generation: 1, Ended: now - 400_000,
	})}})
	if err := take().leaveOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := leftOut(); n != 0 {
		t.Errorf("%d minutes are left out of a store with the records", n)
	}
}
