package engine

import (
	"errors"
	"testing"
)

// The stored form stays readable, and what cannot be read is told by its key.
func TestObjectStored(t *testing.T) {
	k := ObjectKey{"flow", "app", "a"}
	o := Object{ObjectKey: k, Version: 7, UpdatedAt: 300, UpdatedBy: "me", Body: []byte("{}")}
	const golden = "\x01\x07\xd8\x04\x02me\x02{}"
	if got := string(AppendObject(nil, &o)); got != golden {
		t.Errorf("%q", got)
	}
	if got := ReadObject(k, []byte(golden)); got.ObjectKey != k || got.Version != 7 || got.UpdatedAt != 300 || got.UpdatedBy != "me" || string(got.Body) != "{}" {
		t.Errorf("%+v", got)
	}
	for _, stored := range []string{"", golden[:5], golden + "x", "\x02" + golden[1:]} {
		got := ReadObject(k, []byte(stored))
		if got.Damaged == nil || got.ObjectKey != k || got.Version != 0 {
			t.Errorf("%q: %+v", stored, got)
		}
		if done, err := JudgePut(ObjectPut{&o, 0}, &got); done || err != nil {
			t.Errorf("%q cannot be replaced: %v", stored, err)
		}
		if done, err := JudgeDelete(&got, 0); done || err != nil {
			t.Errorf("%q cannot be deleted: %v", stored, err)
		}
	}
	if _, err := JudgePut(ObjectPut{&o, 0}, &Object{Version: 1}); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
}
