package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"xtimer/engine"
)

// Fields keep their order; what is removed goes, what is new comes last.
func TestMergePatch(t *testing.T) {
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":1,"b":2,"c":3}`, `{"a":null}`, `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, `{"d":4,"b":null,"a":5,"e":6}`, `{"a":5,"c":3,"d":4,"e":6}`},
		{`{"a":1}`, `{"b":null,"a":null}`, `{}`},
		{`{"a":{"b":1,"c":2},"d":1.50}`, `{"a":{"b":null,"e":{"f":null,"g":1e3}}}`, `{"a":{"c":2,"e":{"g":1e3}},"d":1.50}`},
		{`{"a":null,"b":[null]}`, `{"c":[null]}`, `{"a":null,"b":[null],"c":[null]}`},
		{`{"a\u0062":1}`, `{"ab":2}`, `{"ab":2}`},
	} {
		got, err := mergePatch(jsontext.Value(c.target), jsontext.Value(c.patch))
		if err != nil || string(got) != c.want {
			t.Errorf("%s and %s: %s, %v", c.target, c.patch, got, err)
		}
	}
}

// TestMergePatchOfManyNames: a timer stands still while its patch is merged, so eight times
// the names cost about eight times as much, not sixty-four. What counts is the time of the
// processor, and of some tries the best: a busy machine makes no merge cheaper.
func TestMergePatchOfManyNames(t *testing.T) {
	for _, onto := range []string{"nothing", "itself"} {
		cost := func(names int) time.Duration {
			var patch strings.Builder
			for i := range names {
				fmt.Fprintf(&patch, `,"%x":1`, i)
			}
			text := "{" + patch.String()[1:] + "}"
			target := "{}"
			if onto == "itself" {
				target = text
			}
			least := time.Hour
			for range 5 {
				least = min(least, processorTime(t, func() {
					if got, err := mergePatch(jsontext.Value(target), jsontext.Value(text)); err != nil || string(got) != text {
						t.Fatal(err)
					}
				}))
			}
			return least
		}
		few, many := cost(10_000), cost(80_000)
		if many > 24*few+50*time.Millisecond {
			t.Errorf("onto %s: 80,000 names cost %v, and 10,000 cost %v", onto, many, few)
		}
	}
}

// processorTime is how long the processor worked on f, and on the garbage of f: no other
// test of the package runs at the same time.
func processorTime(t *testing.T, f func()) time.Duration {
	t.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	from := used()
	f()
	return used() - from
}

// FuzzPatch: a merge patch does what RFC 7396 says, to any two values, and leaves
// numbers as they are written.
func FuzzPatch(f *testing.F) {
	f.Add(orderTimer, `{"schedule":{"delay":null,"every":"1h"},"labels":null,"callback":{"body":{"order":12345678901234567890}}}`)
	f.Add(`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`)
	f.Add(`[1]`, `{"a":{"b":{"c":null}}}`)
	f.Add(`{"a":1}`, `"x"`)
	f.Fuzz(func(t *testing.T, target, patch string) {
		if !jsontext.Value(target).IsValid() || !jsontext.Value(patch).IsValid() {
			return
		}
		got, err := mergePatch(jsontext.Value(target), jsontext.Value(patch))
		if err != nil || !got.IsValid() {
			t.Fatalf("%s, %v", got, err)
		}
		if want := merged(valueOf(t, target), valueOf(t, patch)); !reflect.DeepEqual(valueOf(t, string(got)), want) {
			t.Fatalf("got %s, want %v", got, want)
		}
	})
}

func valueOf(t *testing.T, text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// merged is the algorithm of RFC 7396, section 2.
func merged(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok {
		t = map[string]any{}
	}
	for name, v := range p {
		if v == nil {
			delete(t, name)
		} else {
			t[name] = merged(t[name], v)
		}
	}
	return t
}

// TestPatchOfADeepBody: what a create takes as a body, a patch takes too.
func TestPatchOfADeepBody(t *testing.T) {
	body := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	d := engine.NewDefinition()
	if err := DecodeTimer([]byte(`{"app":"a","name":"n","schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1/","body":`+body+`}}`), &d); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"callback":{"body":` + body + `}}`)
	if err := CheckPatch(patch); err != nil {
		t.Error(err)
	}
	if _, err := Patched(d, patch); err != nil {
		t.Error(err)
	}
	if err := CheckPatch([]byte(`{"callback":{"body":[` + body + `]}}`)); err == nil {
		t.Error("a deeper body is taken")
	}
}

// TestPatchOfUnknownFields: a field that no timer has is refused, whatever its value.
func TestPatchOfUnknownFields(t *testing.T) {
	for patch, field := range map[string]string{
		`{"stale_afer":null}`: "stale_afer", `{"retry":{"x":null}}`: "retry.x", `{"id":null}`: "id", `{"schedule":{"cron":null,"evry":1}}`: "schedule.evry",
	} {
		var f *engine.Fault
		if err := CheckPatch([]byte(patch)); !errors.As(err, &f) || f.Code != "unknown_field" || f.Kind != engine.FaultMalformed || f.Fields[0].Field != field {
			t.Errorf("%s: %v", patch, err)
		}
	}
	for _, patch := range []string{`{}`, `{"labels":{"any":null},"callback":{"headers":{"X-A":null},"body":{"any":null}},"retry":null,"misfire":5}`} {
		if err := CheckPatch([]byte(patch)); err != nil {
			t.Errorf("%s: %v", patch, err)
		}
	}
}
