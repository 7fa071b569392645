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
		"header": "X-A: b", "body": "{}", "body-base64": "AAE=", "label": "team=a", "max-runs": "3", "max-attempts": "3", "backoff-multiplier": "1.5", "backoff-jitter": "0", "priority": "0",
	}
	fields := 0
	leaves("", reflect.ValueOf(api.Definition{}), func(path string, _ reflect.Value) {
		fields++
		flag := fieldFlags[path]
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
		if err := cmd.ParseFlags([]string{"--" + flag, value}); err != nil {
			t.Fatal(err)
		}
		d, err := c.definition(cmd)
		if err != nil {
			t.Fatal(err)
		}
		leaves("", reflect.ValueOf(*d), func(at string, v reflect.Value) {
			if (at == path) == v.IsZero() {
				t.Errorf("--%s %s: %s is %v", flag, value, at, v)
			}
		})
	})
	if fields != len(fieldFlags) {
		t.Errorf("%d fields, and flags for %d", fields, len(fieldFlags))
	}
}
