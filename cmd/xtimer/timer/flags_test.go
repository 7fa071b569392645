package timer

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/span"
	api "xtimer/httpapi/client"
)

// leaves are the paths of the fields of a definition, with their values.
func leaves(path string, v reflect.Value, give func(path string, v reflect.Value)) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" { // no field of the document: it is written as part of another one
			continue
		}
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() {
			leaves(path+name+".", v.FieldByIndex(f.Index), give)
		} else {
			give(path+name, v.FieldByIndex(f.Index))
		}
	}
}

// TestEveryFieldHasAFlag: what a file can say of a timer, create can, and each flag
// reaches its field.
func TestEveryFieldHasAFlag(t *testing.T) {
	values := map[string]string{
		"cron": "@daily", "time-zone": "Asia/Shanghai", "at": "2030-01-01T00:00:00Z", "start-at": "2030-01-01T00:00:00Z", "end-at": "2030-01-01T00:00:00Z",
		"header": "X-A: b", "body": "{}", "body-base64": "AAE=", "label": "team=a", "max-runs": "3", "max-attempts": "3", "backoff-multiplier": "1.5", "backoff-jitter": "0", "priority": "0", "batch": "100",
	}
	fields := 0
	leaves("", reflect.ValueOf(api.Definition{}), func(path string, _ reflect.Value) {
		fields++
		flag := fieldFlags[path]
		if path == "app" {
			if New().PersistentFlags().Lookup(flag) == nil {
				t.Error("the commands of timers have no --app")
			}
			return
		}
		var c creation
		cmd := &cobra.Command{}
		c.flags(cmd)
		if flag == "" || cmd.Flags().Lookup(flag) == nil {
			t.Errorf("%s has no flag", path)
			return
		}
		value := "5m"
		if v, ok := values[flag]; ok {
			value = v
		} else if _, isSpan := cmd.Flags().Lookup(flag).Value.(*span.Value); !isSpan {
			value = "word"
		}
		base, flags := api.Definition{App: "a", Name: "n", Callback: api.Callback{URL: "u"}, Schedule: api.Schedule{Every: time.Hour}}, []string{"--name", "n", "--url", "u", "--every", "1h"}
		if err := cmd.ParseFlags(append(flags, "--"+flag, value)); err != nil {
			t.Fatal(err)
		}
		d, err := c.definition(cmd, "a")
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]reflect.Value{}
		leaves("", reflect.ValueOf(*d), func(at string, v reflect.Value) { set[at] = v })
		leaves("", reflect.ValueOf(base), func(at string, v reflect.Value) {
			if same := reflect.DeepEqual(v.Interface(), set[at].Interface()); same == (at == path) {
				t.Errorf("--%s %s: %s is %v", flag, value, at, set[at])
			}
		})
	})
	if fields != len(fieldFlags) {
		t.Errorf("%d fields, and flags for %d", fields, len(fieldFlags))
	}
}
