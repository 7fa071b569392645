package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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

// TestMergePatchOfManyNames: a timer stands still while its patch is merged.
func TestMergePatchOfManyNames(t *testing.T) {
	var patch strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&patch, `,"%x":1`, i)
	}
	text := "{" + patch.String()[1:] + "}"
	for _, target := range []string{"{}", text} {
		begin := time.Now()
		if got, err := mergePatch(jsontext.Value(target), jsontext.Value(text)); err != nil || string(got) != text {
			t.Error(err)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	}
}
