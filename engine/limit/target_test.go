package limit

import (
	"testing"

	"xtimer/engine/flow"
	"xtimer/engine/object"
)

// The name of a target's object leads to the gate of the URLs that it is about.
func TestTargetKeys(t *testing.T) {
	for url, name := range map[[3]string]string{
		{"HTTPS", "API.example.com", "0443"}: "https://api.example.com:443",
		{"http", "::1", "80"}:                "http://[0:0:0:0:0:0:0:1]",
		{"http", "[::1]", "80"}:              "http://[::1]/x",
		{"http", "127.0.0.1", "9000"}:        "http://127.0.0.1:9000",
	} {
		k, err := TargetKey(url[0], url[1], url[2])
		if err != nil || object.CheckName(k.Name) != nil || k.App != EachApp {
			t.Errorf("%v: %v, %v", url, k, err)
		}
		if got, want := NameOf(k), (flow.Name{Kind: flow.OfTarget, Key: flow.TargetOf(name)}); got != want {
			t.Errorf("%v: %v, want %v", url, got, want)
		}
	}
	for _, bad := range [][3]string{{"ftp", "h", "80"}, {"http", "", "80"}, {"http", "a/b", "80"}, {"http", "ä", "80"}, {"http", "h", "0"}, {"http", "h", "65536"}, {"http", "h", "x"}, {"http", "..", "1"}} {
		if k, err := TargetKey(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%v: %v", bad, k)
		}
	}
}
