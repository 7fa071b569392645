package transfer

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"xtimer/engine"
)

// TestEveryFieldIsExported: what an export writes of a task, of a row of owed and of a
// timer's place in the system lacks no field, also none that is added later.
func TestEveryFieldIsExported(t *testing.T) {
	var task engine.Task
	fill(t, reflect.ValueOf(&task).Elem())
	task.Key = engine.Key{Timer: 7, Due: 1_763_640_000_000}
	owed := engine.Owed{}
	fill(t, reflect.ValueOf(&owed).Elem())
	owed.Key, owed.Task = task.Key, &task
	tm := &engine.Timer{}
	fill(t, reflect.ValueOf(tm).Elem())
	tm.Definition = engine.NewDefinition() // TestRoundTrip has the fields of definitions
	tm.App, tm.Name, tm.Callback.URL = "a", "n", "http://h/"
	tm.Schedule.At, tm.At, tm.LastDue = 1_763_640_000_000, 1_763_640_000_000, 1_763_640_000_000
	tm.ID, tm.Status, tm.Omitted = 7, engine.Disabled, 0

	b, err := json.Marshal(lineOf(tm, []engine.Owed{owed}, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	var l line
	if err := l.read(b); err != nil {
		t.Fatal(err)
	}
	gotTimer, gotOwed, err := l.timer()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(gotTimer, tm) {
		t.Errorf("the timer is imported as\n%+v\nwant\n%+v", gotTimer, tm)
	}
	if len(gotOwed) != 1 || !reflect.DeepEqual(gotOwed[0].Task, &task) {
		t.Fatalf("the task is imported as\n%+v\nwant\n%+v", gotOwed[0].Task, task)
	}
	if !reflect.DeepEqual(gotOwed[0], owed) {
		t.Errorf("the row is imported as\n%+v\nwant\n%+v", gotOwed[0], owed)
	}
}

// fill sets every field to something that is not zero.
func fill(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Pointer:
		// Set by the test.
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(1000)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	default:
		t.Fatalf("a field of kind %v", v.Kind())
	}
}

// TestLongLine: a timer whose calls failed for an hour has many unfinished tasks, and is
// imported with all of them.
func TestLongLine(t *testing.T) {
	const n = 20_000
	tm := &engine.Timer{Definition: engine.NewDefinition(), ID: 7, Version: 1, Generation: 1, Anchor: 1}
	tm.App, tm.Name, tm.Callback.URL, tm.Schedule.Every = "a", "n", "http://h/", 1e8
	var owed []engine.Owed
	for i := range int64(n) {
		k := engine.Key{Timer: 7, Due: 1_763_640_000_000 + 100*i}
		owed = append(owed, engine.Owed{Key: k, Generation: 1, Task: &engine.Task{
			Key: k, App: "a", Name: "n", Generation: 1, Status: engine.Retrying,
			Attempts: []engine.Attempt{{N: 1, Started: k.Due * 1000, Code: 500, ErrorClass: "status", Response: bytes.Repeat([]byte{'x'}, 1000)}},
		}})
	}
	var file bytes.Buffer
	lines := json.NewEncoder(&file)
	for range 2 {
		if err := lines.Encode(lineOf(tm, owed, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	read := 0
	err := fileReader("-", strings.NewReader(strings.TrimSpace(file.String())))(t.Context(), func(i *item) error {
		_, rows, err := i.timer()
		if len(rows) != n {
			t.Errorf("%s: %d of %d tasks, %s", i.at, len(rows), n, i.why)
		}
		read++
		return err
	})
	if err != nil || read != 2 {
		t.Errorf("%d of 2 lines are read, %v", read, err)
	}
}
