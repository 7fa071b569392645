package main

import (
	"encoding/json"
	"strings"
	"testing"

	"xtimer/cmd/xtimer/exit"
)

// The channels, rules and mutes of an app are shown, and the URL of a robot is not.
func TestAlertShow(t *testing.T) {
	s := newShell(t)
	s.do("secret", "list", "-n", "shop")
	s.run("s3cr3t", "secret", "set", "hook", "-n", "shop").want(0)
	for name, channel := range map[string]string{
		"robot": `{"kind":"slack","url":"https://user:t0ken@hooks.example.com/services/t0ken?key=t0ken","proxy":"http://user:t0ken@proxy.example.com:3128"}`,
		"ops":   `{"url":{"secret":"hook"},"secret":{"secret":"hook"}}`,
		"mail":  `{"kind":"email","smtp":{"host":"smtp.example.com","user":"u","password":{"secret":"hook"},"from":"x@example.com","to":["a@example.com"]}}`,
	} {
		s.run(channel, "alert", "set", "channels", name, "-n", "shop").want(0, "created")
	}
	s.run(`{"on":["dead","failed"],"match":{"name_prefix":"report","label":"team=a"},"streak":2,"channels":["robot","ops"]}`, "alert", "set", "rules", "often", "-n", "shop").want(0)
	s.run(`{"on":["late"],"late":"2s","after":3,"channels":["ops"],"severity":"critical"}`, "alert", "set", "rules", "slow", "-n", "shop").want(0)
	s.do("alert", "mute", "move", "-n", "shop", "--until", "2h", "--reason", "the target moves")

	show := func(args ...string) result {
		r := s.run("", append([]string{"alert", "show", "-n", "shop"}, args...)...)
		if strings.Contains(r.out+r.stderr, "t0ken") || strings.Contains(r.out+r.stderr, "s3cr3t") {
			t.Errorf("%s tells a secret: %s", r.line, r.out)
		}
		return r
	}
	show("channels").want(0, "NAME", "TO", "robot", "slack", "https://hooks.example.com/…", "secret hook", "smtp.example.com:587 → a@example.com")
	show("channels", "-o", "name").want(0, "mail\nops\nrobot\n")
	show("channels", "-o", "yaml").want(0, "http://proxy.example.com:3128")
	var one struct{ Name, URL, Proxy string }
	if r := show("channels", "robot", "-o", "json"); json.Unmarshal([]byte(r.out), &one) != nil || one.Name != "robot" || one.URL != "https://hooks.example.com/…" || one.Proxy != "http://proxy.example.com:3128" {
		t.Errorf("%+v of %s", one, r.out)
	}
	show("rules").want(0, "often  warning   dead, failed, 2 in a row", "report* team=a", "robot, ops", "slow   critical  late, 3 in 10m, later than 2s", "all")
	show("rules", "slow").want(0, "critical")
	show("mutes").want(0, "move", "the target moves")
	show("rules", "none").want(exit.StatusNotFound, "shop/none not found")
	show("timers").want(exit.StatusUsage, "channels, rules, mutes")
	show("rules", "--limit", "1").want(0, "Only the first 1 ")
}
