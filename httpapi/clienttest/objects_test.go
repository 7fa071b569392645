package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"xtimer/httpapi/client"
)

// objectCalls are the calls of secrets, flows and alerts, by the operation. Each makes what it
// needs.
func objectCalls(ctx context.Context, c *client.Client) map[string]func() error {
	all := map[string]func() error{}
	flow := func(call func(key string) error) func() error {
		return func() error {
			_, err := c.PutFlow(ctx, "a", "key", client.FlowLimit{Rate: 10})
			return errors.Join(err, call("key"))
		}
	}
	all["putFlow"] = flow(func(string) error { return nil })
	all["getFlow"] = flow(func(key string) error { _, err := c.Flow(ctx, "a", key); return err })
	all["listFlows"] = flow(func(string) error { return drain(c.Flows(ctx, "a")) })
	all["listWaiting"] = flow(func(key string) error { return drain(c.Waiting(ctx, "a", key)) })
	all["pauseFlow"] = flow(func(key string) error {
		_, err := c.PauseFlow(ctx, "a", key, client.Pause{Reason: "a test"})
		return err
	})
	all["resumeFlow"] = flow(func(key string) error {
		_, err := c.ResumeFlow(ctx, "a", key, client.Resume{Backlog: client.BacklogLatest})
		return err
	})
	all["coolFlow"] = flow(func(key string) error { _, err := c.CoolFlow(ctx, "a", key, time.Now().Add(time.Minute)); return err })
	all["deleteFlow"] = flow(func(key string) error { return c.DeleteFlow(ctx, "a", key) })
	target := func(call func(url string) error) func() error {
		return func() error {
			const url = "https://Partner.example.com/pay"
			_, err := c.PutTarget(ctx, url, client.FlowLimit{Rate: 10})
			return errors.Join(err, call(url))
		}
	}
	all["putTarget"] = target(func(string) error { return nil })
	all["getTarget"] = target(func(url string) error {
		t, err := c.Target(ctx, url)
		if err == nil && (t.Target != "https://partner.example.com:443" || t.Rate != 10) {
			err = fmt.Errorf("%+v", t)
		}
		return err
	})
	all["listTargets"] = target(func(string) error { return drain(c.Targets(ctx)) })
	all["pauseTarget"] = target(func(url string) error {
		_, err := c.PauseTarget(ctx, url, client.Pause{Reason: "a test"})
		return err
	})
	all["resumeTarget"] = target(func(url string) error {
		_, err := c.ResumeTarget(ctx, url, client.Resume{Backlog: client.BacklogSkip})
		return err
	})
	all["coolTarget"] = target(func(url string) error { _, err := c.CoolTarget(ctx, url, time.Now().Add(time.Minute)); return err })
	all["deleteTarget"] = target(func(url string) error { return c.DeleteTarget(ctx, url) })
	quota := func(call func() error) func() error {
		return func() error {
			_, err := c.PutQuota(ctx, "b", client.QuotaLimits{InFlight: 1000})
			return errors.Join(err, call())
		}
	}
	all["putQuota"] = quota(func() error { return nil })
	all["getQuota"] = quota(func() error {
		q, err := c.Quota(ctx, "b")
		if err == nil && (q.App != "b" || q.InFlight != 1000 || q.Version == 0) {
			err = fmt.Errorf("the quota is %+v", q)
		}
		return err
	})
	all["deleteQuota"] = quota(func() error { return c.DeleteQuota(ctx, "b") })
	all["pauseApp"] = func() error { return c.PauseApp(ctx, "b", client.Pause{}) }
	all["getAppPause"] = func() error { _, err := c.AppPause(ctx, "b"); return err }
	all["resumeApp"] = func() error { return c.ResumeApp(ctx, "b", client.Resume{}) }

	secret := func(call func(name string) error) func() error {
		return func() error {
			_, err := c.PutSecret(ctx, "a", "TOKEN", "word")
			return errors.Join(err, call("TOKEN"))
		}
	}
	all["putSecret"] = secret(func(string) error { return nil })
	all["getSecret"] = secret(func(name string) error { _, err := c.Secret(ctx, "a", name); return err })
	all["listSecrets"] = secret(func(string) error { return drain(c.Secrets(ctx, "a")) })
	all["deleteSecret"] = secret(func(name string) error { return c.DeleteSecret(ctx, "a", name) })

	for kind, x := range map[string]struct{ name, definition string }{
		"channels": {"Channel", `{"kind":"webhook","url":"http://127.0.0.1:9/"}`},
		"rules":    {"Rule", `{"on":["failed"],"channels":["ops"]}`},
		"mutes":    {"Mute", `{"until":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`},
	} {
		made := func(call func(name string) error) func() error {
			return func() error {
				_, err := c.PutAlert(ctx, "a", "channels", "ops", json.RawMessage(`{"kind":"webhook","url":"http://127.0.0.1:9/"}`))
				name := "ops"
				if kind == "channels" {
					name = "other"
				}
				_, lost := c.PutAlert(ctx, "a", kind, name, json.RawMessage(x.definition))
				return errors.Join(err, lost, call(name))
			}
		}
		all["put"+x.name] = made(func(string) error { return nil })
		all["get"+x.name] = made(func(name string) error { _, err := c.Alert(ctx, "a", kind, name); return err })
		all["list"+x.name+"s"] = made(func(string) error { return drain(c.Alerts(ctx, "a", kind)) })
		all["delete"+x.name] = made(func(name string) error { return c.DeleteAlert(ctx, "a", kind, name) })
		switch kind {
		case "channels":
			all["testChannel"] = made(func(name string) error { _, err := c.TestChannel(ctx, "a", name); return err })
		case "rules":
			all["previewRule"] = made(func(name string) error { _, err := c.PreviewRule(ctx, "a", name, 24*time.Hour); return err })
		}
	}
	// The server of the test has no alerter: it refuses what only that one knows.
	for _, id := range []string{"testChannel", "previewRule"} {
		call := all[id]
		all[id] = func() error {
			if err := call(); !hasCode(err, http.StatusServiceUnavailable) {
				return errors.Join(err, errors.New("it was answered"))
			}
			return nil
		}
	}
	all["listIncidents"] = func() error {
		for _, err := range c.Incidents(ctx, client.IncidentFilter{App: "a", State: "open", From: time.Now()}) {
			if !hasCode(err, http.StatusServiceUnavailable) {
				return errors.Join(err, errors.New("it was answered"))
			}
		}
		return nil
	}
	all["ackIncident"] = func() error {
		if _, err := c.AckIncident(ctx, "none", "a note"); !hasCode(err, http.StatusServiceUnavailable) {
			return errors.Join(err, errors.New("it was answered"))
		}
		return nil
	}
	return all
}
