package wal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// begun and finished are what a test replays into.
type replayed struct {
	begun    []engine.Begun
	finished [][]byte
	order    []byte // kinds, in order
}

func (r *replayed) begin(b engine.Begun) error {
	r.begun, r.order = append(r.begun, b), append(r.order, kindBegun)
	return nil
}

func (r *replayed) finish(t []byte) error {
	r.finished, r.order = append(r.finished, bytes.Clone(t)), append(r.order, kindFinished)
	return nil
}

var sample = engine.Begun{
	Key: engine.Key{Timer: 0x0102030405060708, Due: 0x0a0b0c0d0e0f}, Generation: 3, Attempt: 2,
	Origin: engine.FromRedrive, AtMostOnce: true,
}

func sampleGroup() *group {
	g := &group{}
	g.reset(258, time.Time{})
	g.begin(&sample)
	g.finished([]byte("task"))
	return g
}

// The bytes on disk are a promise to the next release.
func TestGroupGolden(t *testing.T) {
	for _, c := range []struct {
		kind byte
		g    *group
		want string
	}{
		{kindRecords, sampleGroup(), `
			01 72 0200000000000000
			01 12 0807060504030201 0f0e0d0c0b0a0000 03000000 02000000
			02 04000000 7461736b
			cf16e5cb`},
		{kindLost, func() *group {
			g := &group{}
			g.reset(7, time.Time{})
			g.count = 5
			return g
		}(), `01 6c 0500000000000000 083b5add`},
	} {
		want, _ := hex.DecodeString(strings.Join(strings.Fields(c.want), ""))
		got := c.g.seal(c.kind)
		if !bytes.Equal(got, want) {
			t.Errorf("kind %q: %x, want %x", c.kind, got, want)
		}
		if n, err := checkGroup(c.g.first, got); err != nil || n != c.g.count {
			t.Errorf("kind %q: count %d, %v", c.kind, n, err)
		}
	}
	if got, want := groupKey(258), []byte("g\x00\x00\x00\x00\x00\x00\x01\x02"); !bytes.Equal(got, want) {
		t.Errorf("key %x, want %x", got, want)
	}
}

func TestGroupRoundTrip(t *testing.T) {
	g := sampleGroup()
	var r replayed
	if err := decodeGroup(g.first, g.seal(kindRecords), r.begin, r.finish); err != nil {
		t.Fatal(err)
	}
	if len(r.begun) != 1 || r.begun[0] != sample || len(r.finished) != 1 || string(r.finished[0]) != "task" {
		t.Fatalf("got %+v", r)
	}
}

// Whatever bit is wrong, and wherever it is cut, the decoder says so and where.
func TestGroupDamage(t *testing.T) {
	good := sampleGroup().seal(kindRecords)
	var r replayed
	for i := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		if err := decodeGroup(258, bad, r.begin, r.finish); err == nil || !strings.Contains(err.Error(), "position 258") {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
	for n := range good {
		if decodeGroup(258, good[:n], r.begin, r.finish) == nil {
			t.Fatalf("cut at %d: no error", n)
		}
	}
	if decodeGroup(259, good, r.begin, r.finish) == nil {
		t.Fatal("under another key: no error")
	}
	if len(r.order) != 0 {
		t.Fatalf("%d records came out of damaged groups", len(r.order))
	}
	stop := errors.New("stop")
	if err := decodeGroup(258, good, r.begin, func([]byte) error { return stop }); !errors.Is(err, stop) ||
		!strings.Contains(err.Error(), "position 259 (2 of 2 in its group, offset 36)") {
		t.Fatalf("error of a record: %v", err)
	}
}

// FuzzDecode holds that no bytes make the decoder panic, and that what it takes
// is exactly what the encoder would have written. The sum is made right, or it
// would guard the rest from ever being reached.
func FuzzDecode(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		g := &group{}
		g.reset(rnd.Uint64N(1000), time.Time{})
		for range rnd.IntN(5) {
			if rnd.IntN(2) == 0 {
				g.begin(&engine.Begun{Key: engine.Key{Timer: 1, Due: 2}, Origin: engine.Origin(rnd.IntN(4))})
			} else {
				g.finished(make([]byte, rnd.IntN(9)))
			}
		}
		b := g.seal(kindRecords)
		f.Add(g.first, b[:len(b)-groupFooter])
	}
	f.Fuzz(func(t *testing.T, first uint64, body []byte) {
		v := (&group{first: first, b: bytes.Clone(body)})
		sum := groupSum(first, body)
		b := append(v.b, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
		back := &group{}
		back.reset(first, time.Time{})
		err := decodeGroup(first, b,
			func(b engine.Begun) error { back.begin(&b); return nil },
			func(t []byte) error { back.finished(t); return nil })
		if err == nil && b[1] == kindRecords && !bytes.Equal(back.seal(kindRecords), b) {
			t.Fatalf("taken, but not what is written:\n%x\n%x", b, back.b)
		}
		_ = decodeGroup(first, body, func(engine.Begun) error { return nil }, func([]byte) error { return nil })
	})
}
