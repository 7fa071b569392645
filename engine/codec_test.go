package engine_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

func fullTimer() *engine.Timer {
	d := engine.NewDefinition()
	d.App, d.Name = "billing", "order-1"
	d.Schedule = engine.Schedule{Cron: "0 9 * * 1-5", TimeZone: "Asia/Shanghai", StartAt: 1, EndAt: 2, MaxRuns: 3, Jitter: 5 * time.Second}
	d.Callback = engine.Callback{
		URL: "https://a/b", Method: "POST", Headers: []engine.Header{{Name: "A", Value: "b"}}, Body: []byte("{}"),
		HasBody: true, BodyKind: engine.BodyJSON, Timeout: 15 * time.Second, Success: "2xx",
	}
	d.Misfire, d.Overlap, d.Delivery, d.Priority = engine.Misfire{Policy: engine.MisfireAll, Window: time.Hour}, engine.OverlapQueue, engine.AtMostOnce, 9
	d.Labels = []engine.Label{{Key: "team", Value: "a"}}
	return &engine.Timer{
		Definition: d, ID: 7354, Status: engine.Disabled, Reason: "why", Version: 2, Generation: 3,
		ValidFrom: 4, Anchor: -5, At: 6, LastDue: 7, CreatedAt: 1763658000250, UpdatedAt: 9,
	}
}

// secondTimer is what the first version cannot say.
func secondTimer() *engine.Timer {
	t := fullTimer()
	t.StaleAfter = 5 * time.Second
	return t
}

// thirdTimer is what the second version cannot say.
func thirdTimer() *engine.Timer {
	t := secondTimer()
	t.UpdatedBy = "ci"
	return t
}

// fourthTimer is what the third version cannot say.
func fourthTimer() *engine.Timer {
	t := thirdTimer()
	t.Flow = engine.FlowOf([]string{"user-17", "stripe"})
	return t
}

// heldTask is what the third version of a task cannot say.
func heldTask() *engine.Task {
	t := dismissedTask()
	t.Attempts[0].Phases.Hold = 1200 * time.Millisecond
	t.Holds = []engine.Hold{{By: "flow", Name: "stripe", Took: 1200 * time.Millisecond}, {By: "pause", Name: "billing", Took: time.Microsecond}}
	return t
}

// heldRow is what the third version of a row cannot say.
func heldRow() *engine.Owed {
	o := oneShotRow()
	o.Held = 1200
	return o
}

// dismissedTask is what the second version of a task cannot say.
func dismissedTask() *engine.Task {
	t := fullTask()
	t.Dismissed, t.DismissedBy = 1763658000999, "ci"
	return t
}

func fullTask() *engine.Task {
	return &engine.Task{
		Key: engine.Key{Timer: 7354, Due: 1763658000250}, App: "billing", Name: "order-1", Generation: 3, Origin: engine.FromRedrive,
		Status: engine.Dead, Reason: "max_attempts", DueLast: 1, Count: 2, Lateness: -1, NotBefore: 3, Ended: 4, Base: 5, Since: 6,
		Attempts: []engine.Attempt{{N: 1, Started: 1763658000250123, Took: time.Second, Code: 500, ErrorClass: "status", Response: []byte("no"), Phases: engine.Phases{
			Wheel: 1 * time.Microsecond, Queue: 2 * time.Microsecond, Dial: 300 * time.Microsecond, TLS: 4 * time.Microsecond,
			Send: 5 * time.Microsecond, FirstByte: 6 * time.Microsecond, Read: time.Second,
		}}, {N: 2}},
	}
}

func fifthTimer() *engine.Timer {
	t := fourthTimer()
	t.Callback.Headers = append(t.Callback.Headers, engine.Header{Name: "C", Secret: "s"})
	return t
}

// batchTimer is what the fifth version cannot say.
func batchTimer() *engine.Timer {
	t := fifthTimer()
	t.Callback.Batch = &engine.Batch{Max: 100, Wait: 50 * time.Millisecond}
	return t
}

// batchTask is what the fourth version of a task cannot say.
func batchTask() *engine.Task {
	t := heldTask()
	t.Attempts[1].Batch, t.Attempts[1].BatchSize = 0x0102030405060708, 100
	return t
}

func fullOwed() engine.Owed {
	return engine.Owed{
		Key: engine.Key{Timer: 7354, Due: 1763658000250}, To: 1763658000999, Generation: 3, Origin: engine.FromCatchUp,
		Begun: true, NotBefore: 8, Lane: 0x0102030405060708, Task: fullTask(),
	}
}

func oneShotRow() *engine.Owed {
	return &engine.Owed{Key: engine.Key{Timer: 7354, Due: 1763658000250}, Lane: 0x0102030405060708, OneShot: true}
}

// TestRowsWithoutALane: a row of version 1 has no lane.
func TestRowsWithoutALane(t *testing.T) {
	b, err := hex.DecodeString("01ba39f49daba3d466cea9aba3d466030301100102ba39f49daba3d4660762696c6c696e67076f726465722d310302050c6d61785f617474656d70747302040106080a0c020296d4e189b482a20680a8d6b907e80706737461747573026e6f0102ac02040506c0843d04000000000000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	want := fullOwed()
	want.Lane = 0
	if got, err := engine.DecodeOwed(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// What is on disks out there must be read for ever: a failure here asks for a
// new version byte, not for new golden bytes.
func TestCodecGolden(t *testing.T) {
	o := fullOwed()
	for _, x := range []struct {
		name   string
		got    []byte
		golden string
	}{
		{"timer", engine.AppendTimer(nil, fullTimer()), "01ba390762696c6c696e67076f726465722d310103776879020308090c0ef49daba3d466120b302039202a202a20312d350d417369612f5368616e676861690000000002040680c8afa0250b68747470733a2f2f612f6204504f535401014101620101027b7d80d88ee16f033278780880a8d6b907000000000000104080e0a596bb119a9999999999c93f8080f89492a527028080c58bc6d10102010901047465616d0161"},
		{"timer 2", engine.AppendTimer(nil, secondTimer()), "02ba390762696c6c696e67076f726465722d310103776879020308090c0ef49daba3d466120b302039202a202a20312d350d417369612f5368616e676861690000000002040680c8afa0250b68747470733a2f2f612f6204504f535401014101620101027b7d80d88ee16f033278780880a8d6b907000000000000104080e0a596bb119a9999999999c93f8080f89492a527028080c58bc6d10102010901047465616d016180c8afa02500"},
		{"timer 3", engine.AppendTimer(nil, thirdTimer()), "03ba390762696c6c696e67076f726465722d310103776879020308090c0ef49daba3d466120b302039202a202a20312d350d417369612f5368616e676861690000000002040680c8afa0250b68747470733a2f2f612f6204504f535401014101620101027b7d80d88ee16f033278780880a8d6b907000000000000104080e0a596bb119a9999999999c93f8080f89492a527028080c58bc6d10102010901047465616d016180c8afa02500026369"},
		{"timer 4", engine.AppendTimer(nil, fourthTimer()), "04ba390762696c6c696e67076f726465722d310103776879020308090c0ef49daba3d466120b302039202a202a20312d350d417369612f5368616e676861690000000002040680c8afa0250b68747470733a2f2f612f6204504f535401014101620101027b7d80d88ee16f033278780880a8d6b907000000000000104080e0a596bb119a9999999999c93f8080f89492a527028080c58bc6d10102010901047465616d016180c8afa025000263690e757365722d313720737472697065"},
		{"task 4", engine.AppendTask(nil, heldTask()), "04ba39f49daba3d4660762696c6c696e67076f726465722d310302050c6d61785f617474656d70747302040106080a0c020296d4e189b482a20680a8d6b907e80706737461747573026e6f0102ac02040506c0843d04000000000000000000000000cea9aba3d466026369809f49000204666c6f7706737472697065809f490570617573650762696c6c696e6701"},
		{"owed 4", engine.AppendOwed(nil, heldRow()), "04ba39f49daba3d4660000000000080706050403020101e01200"},
		{"timer 5", engine.AppendTimer(nil, fifthTimer()), "05ba390762696c6c696e67076f726465722d310103776879020308090c0ef49daba3d466120b302039202a202a20312d350d417369612f5368616e676861690000000002040680c8afa0250b68747470733a2f2f612f6204504f535402014101620143000101027b7d80d88ee16f033278780880a8d6b907000000000000104080e0a596bb119a9999999999c93f8080f89492a527028080c58bc6d10102010901047465616d016180c8afa025000263690e757365722d313720737472697065000173"},
		{"timer 6", engine.AppendTimer(nil, batchTimer()), "06ba390762696c6c696e67076f726465722d310103776879020308090c0ef49daba3d466120b302039202a202a20312d350d417369612f5368616e676861690000000002040680c8afa0250b68747470733a2f2f612f6204504f535402014101620143000101027b7d80d88ee16f033278780880a8d6b907000000000000104080e0a596bb119a9999999999c93f8080f89492a527028080c58bc6d10102010901047465616d016180c8afa025000263690e757365722d3137207374726970650001736480c2d72f0000000000000000"},
		{"task 5", engine.AppendTask(nil, batchTask()), "05ba39f49daba3d4660762696c6c696e67076f726465722d310302050c6d61785f617474656d70747302040106080a0c020296d4e189b482a20680a8d6b907e80706737461747573026e6f0102ac02040506c0843d04000000000000000000000000cea9aba3d466026369809f49000204666c6f7706737472697065809f490570617573650762696c6c696e670100640807060504030201"},
		{"task 3", engine.AppendTask(nil, dismissedTask()), "03ba39f49daba3d4660762696c6c696e67076f726465722d310302050c6d61785f617474656d70747302040106080a0c020296d4e189b482a20680a8d6b907e80706737461747573026e6f0102ac02040506c0843d04000000000000000000000000cea9aba3d466026369"},
		{"task", engine.AppendTask(nil, fullTask()), "02ba39f49daba3d4660762696c6c696e67076f726465722d310302050c6d61785f617474656d70747302040106080a0c020296d4e189b482a20680a8d6b907e80706737461747573026e6f0102ac02040506c0843d04000000000000000000000000"},
		{"owed 3", engine.AppendOwed(nil, oneShotRow()), "03ba39f49daba3d466000000000008070605040302010100"},
		{"owed", engine.AppendOwed(nil, &o), "02ba39f49daba3d466cea9aba3d4660303011008070605040302010102ba39f49daba3d4660762696c6c696e67076f726465722d310302050c6d61785f617474656d70747302040106080a0c020296d4e189b482a20680a8d6b907e80706737461747573026e6f0102ac02040506c0843d04000000000000000000000000"},
	} {
		if got := hex.EncodeToString(x.got); got != x.golden {
			t.Errorf("%s:\n got %s\nwant %s", x.name, got, x.golden)
		}
	}
}

// TestCodecFormer: what former versions wrote is read.
func TestCodecFormer(t *testing.T) {
	const first = "01ba39f49daba3d4660762696c6c696e67076f726465722d310302050c6d61785f617474656d70747302040106080a0c020296d4e189b482a20680a8d6b907e80706737461747573026e6f040000000000" // a task without phases
	want := fullTask()
	want.Attempts[0].Phases = engine.Phases{}
	b, err := hex.DecodeString(first)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := engine.DecodeTask(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("version 1: %+v, %v", got, err)
	}
}

// TestCodecNegative: a phase that cannot be must not make a record unreadable.
func TestCodecNegative(t *testing.T) {
	task := fullTask()
	task.Attempts[0].Phases.Queue = -1
	got, err := engine.DecodeTask(engine.AppendTask(nil, task))
	if err != nil || got.Attempts[0].Phases.Queue != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCodecRoundTrip(t *testing.T) {
	if got, err := engine.DecodeTimer(engine.AppendTimer(nil, fullTimer())); err != nil || !reflect.DeepEqual(got, fullTimer()) {
		t.Errorf("timer: %+v, %v", got, err)
	}
	if got, err := engine.DecodeTimer(engine.AppendTimer(nil, secondTimer())); err != nil || !reflect.DeepEqual(got, secondTimer()) {
		t.Errorf("timer 2: %+v, %v", got, err)
	}
	if got, err := engine.DecodeTimer(engine.AppendTimer(nil, thirdTimer())); err != nil || !reflect.DeepEqual(got, thirdTimer()) {
		t.Errorf("timer 3: %+v, %v", got, err)
	}
	if got, err := engine.DecodeTimer(engine.AppendTimer(nil, fifthTimer())); err != nil || !reflect.DeepEqual(got, fifthTimer()) {
		t.Errorf("timer 5: %+v, %v", got, err)
	}
	if got, err := engine.DecodeTimer(engine.AppendTimer(nil, fourthTimer())); err != nil || !reflect.DeepEqual(got, fourthTimer()) {
		t.Errorf("timer 4: %+v, %v", got, err)
	}
	if got, err := engine.DecodeTimer(engine.AppendTimer(nil, batchTimer())); err != nil || !reflect.DeepEqual(got, batchTimer()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := engine.DecodeTask(engine.AppendTask(nil, batchTask())); err != nil || !reflect.DeepEqual(got, batchTask()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := engine.DecodeTask(engine.AppendTask(nil, heldTask())); err != nil || !reflect.DeepEqual(got, heldTask()) {
		t.Errorf("task 4: %+v, %v", got, err)
	}
	if got, err := engine.DecodeOwed(engine.AppendOwed(nil, heldRow())); err != nil || !reflect.DeepEqual(&got, heldRow()) {
		t.Errorf("owed 4: %+v, %v", got, err)
	}
	if got, err := engine.DecodeTask(engine.AppendTask(nil, dismissedTask())); err != nil || !reflect.DeepEqual(got, dismissedTask()) {
		t.Errorf("task 3: %+v, %v", got, err)
	}
	if got, err := engine.DecodeTask(engine.AppendTask(nil, fullTask())); err != nil || !reflect.DeepEqual(got, fullTask()) {
		t.Errorf("task: %+v, %v", got, err)
	}
	o := fullOwed()
	if got, err := engine.DecodeOwed(engine.AppendOwed(nil, &o)); err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("owed: %+v, %v", got, err)
	}
	if got, err := engine.DecodeOwed(engine.AppendOwed(nil, oneShotRow())); err != nil || !reflect.DeepEqual(&got, oneShotRow()) {
		t.Errorf("owed 3: %+v, %v", got, err)
	}
}

// A row that cannot be read, or is another task's, is told of by its key, and not stored.
func TestReadOwed(t *testing.T) {
	k := engine.Key{Timer: 7, Due: 1000}
	whole := engine.AppendOwed(nil, &engine.Owed{Key: k, Generation: 3})
	if o := engine.ReadOwed(k, whole); o.Damaged != nil || o.Generation != 3 {
		t.Errorf("%+v", o)
	}
	other := engine.Key{Timer: 7, Due: 1001}
	for _, o := range []engine.Owed{engine.ReadOwed(k, whole[:4]), engine.ReadOwed(k, nil), engine.ReadOwed(other, whole)} {
		if o.Damaged == nil || o.Damaged.Key != o.Key || !strings.Contains(o.Damaged.Error(), o.Key.String()) || !o.Used() {
			t.Errorf("%+v, %v", o, o.Damaged)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a row that cannot be read was stored")
				}
			}()
			engine.AppendOwed(nil, &o)
		}()
	}
}

// Every cut, and every other version, is an error and no panic.
func TestCodecRefuses(t *testing.T) {
	o := fullOwed()
	o.Held = 1200
	for name, b := range map[string][]byte{
		"timer": engine.AppendTimer(nil, batchTimer()), "task": engine.AppendTask(nil, batchTask()), "owed": engine.AppendOwed(nil, &o),
	} {
		decode := func(b []byte) error {
			switch name {
			case "timer":
				_, err := engine.DecodeTimer(b)
				return err
			case "task":
				_, err := engine.DecodeTask(b)
				return err
			}
			_, err := engine.DecodeOwed(b)
			return err
		}
		for i := range b {
			if decode(b[:i:i]) == nil {
				t.Errorf("%s: the first %d of %d bytes are taken", name, i, len(b))
			}
		}
		if decode(append(bytes.Clone(b), 0)) == nil {
			t.Errorf("%s: a byte too many is taken", name)
		}
		for _, v := range []byte{0, b[0] + 1, 255} {
			c := bytes.Clone(b)
			if c[0] = v; decode(c) == nil {
				t.Errorf("%s: version %d is taken", name, v)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	o := fullOwed()
	f.Add(engine.AppendTimer(nil, fullTimer()))
	f.Add(engine.AppendTimer(nil, thirdTimer()))
	f.Add(engine.AppendTask(nil, dismissedTask()))
	f.Add(engine.AppendTimer(nil, fourthTimer()))
	f.Add(engine.AppendTask(nil, heldTask()))
	f.Add(engine.AppendOwed(nil, heldRow()))
	f.Add(engine.AppendOwed(nil, &o))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := engine.DecodeTimer(bytes.Clone(b)); err == nil {
			c := engine.AppendTimer(nil, x)
			if y, err := engine.DecodeTimer(bytes.Clone(c)); err != nil || !bytes.Equal(engine.AppendTimer(nil, y), c) {
				t.Errorf("timer: %+v, %v", y, err)
			}
			var head engine.Timer
			if err := engine.DecodeTimerHead(b, &head); err != nil || head.Version != x.Version || !reflect.DeepEqual(head.Schedule, x.Schedule) {
				t.Errorf("head: %+v, %v", head, err)
			}
		}
		if x, err := engine.DecodeTask(bytes.Clone(b)); err == nil {
			c := engine.AppendTask(nil, x)
			if y, err := engine.DecodeTask(bytes.Clone(c)); err != nil || !bytes.Equal(engine.AppendTask(nil, y), c) {
				t.Errorf("task: %+v, %v", y, err)
			}
		}
		if x, err := engine.DecodeOwed(bytes.Clone(b)); err == nil {
			c := engine.AppendOwed(nil, &x)
			if y, err := engine.DecodeOwed(bytes.Clone(c)); err != nil || !bytes.Equal(engine.AppendOwed(nil, &y), c) {
				t.Errorf("owed: %+v, %v", y, err)
			}
		}
	})
}
