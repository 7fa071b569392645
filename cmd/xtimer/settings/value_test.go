package settings

import (
	"strings"
	"testing"
)

// TestListHidesPasswords: wherever in an address a password stands, and whatever its
// characters make of the URL, none of it is shown.
func TestListHidesPasswords(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"localhost":                             "localhost",
		"h:6379,[::1]:6380":                     "h:6379,[::1]:6380",
		"redis://h:6379/3":                      "redis://h:6379/3",
		"rediss://u:hush@h:6379,h2:6379":        "rediss://u:xxxxx@h:6379,h2:6379",
		"redis://:hu%23sh@h:6379":               "redis://:xxxxx@h:6379",
		"redis://u:hu@sh@h:6379/3":              "redis://u:xxxxx@h:6379/3",
		"redis://h:1?sentinel_password=hush":    "redis://h:1?sentinel_password=xxxxx",
		"redis://:hush@h?Password=hush&db=1,g:": "redis://:xxxxx@h?Password=xxxxx&db=1,g:",
		"redis://h:1?sentinel_username=s&sentinel_password=hush,g:2":  "redis://h:1?sentinel_password=xxxxx&sentinel_username=s,g:2",
		"redis://u:hush@h:1?sentinel_password=hush&sentinel_password": "redis://u:xxxxx@h:1?sentinel_password=xxxxx",
		// The password ends the URL, or its parts are read as others.
		"redis://:hu#sh@h:6379":                "(hidden)",
		"redis://:hu/sh@h:6379":                "(hidden)",
		"redis://:hu?sh@h:6379":                "(hidden)",
		"redis://:hu%sh@h:6379":                "(hidden)",
		"redis://:12#sh@h:6379":                "(hidden)",
		"redis://:12/sh@h:6379":                "(hidden)",
		"redis://:12?sh@h:6379":                "(hidden)",
		"redis://:hu@sh/sh@h:6379":             "(hidden)",
		"redis://:hu://sh@h:6379":              "(hidden)",
		"redis://h?sentinel_password=hu#sh":    "(hidden)",
		"redis://h?sentinel_password=hu@sh":    "(hidden)",
		"redis://h?sentinel_password=hu%sh":    "(hidden)",
		"redis://h?sentinel_password=hu;sh":    "(hidden)",
		"redis://:hu,sh@h:6379":                "(hidden)",
		"redis://:12,sh,sh@h:6379":             "(hidden)",
		"redis://h:1?sentinel_password=hu,sh":  "(hidden)",
		"redis://:hu%zz@h:6379,redis://g:6379": "(hidden)",
		":hush@h:6379":                         "(hidden)",
	} {
		var v listValue
		if err := v.Set(in); err != nil {
			t.Fatal(err)
		}
		got := v.String()
		if got != want || strings.Contains(got, "hu") || strings.Contains(got, "sh") {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}
