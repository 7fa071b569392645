package flow

import "testing"

func TestTargets(t *testing.T) {
	for url, want := range map[string]string{
		"http://Example.COM":               "http://example.com:80",
		"HTTPS://example.com/A?b=://c":     "https://example.com:443",
		"https://example.com:0443":         "https://example.com:443",
		"https://example.com:":             "https://example.com:443",
		"http://example.com:8080?x":        "http://example.com:8080",
		"http://u:p@w@h:81/x":              "http://h:81",
		"http://[::1]/x":                   "http://[::1]:80",
		"https://[2001:DB8:0::1]:8443":     "https://[2001:db8::1]:8443",
		"http://127.0.0.1:9000/expire#a:b": "http://127.0.0.1:9000",
		"t":                                "t",
	} {
		if got := TargetOf(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
