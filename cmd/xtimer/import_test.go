package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/scheduler"
	api "xtimer/httpapi/client"
	"xtimer/tier/servertest"
)

// cli runs a command that speaks to no server.
func cli(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return cliFrom(t, strings.NewReader(stdin), args...)
}

func cliFrom(t *testing.T, stdin io.Reader, args ...string) result {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&stderr)
	cmd.SetIn(stdin)
	err := cmd.ExecuteContext(t.Context())
	if err != nil {
		fmt.Fprintf(&stderr, "xtimer: %v\n", err)
	}
	return result{t, strings.Join(args, " "), out.String(), stderr.String(), exit.StatusOf(err)}
}

func must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r := cli(t, stdin, args...)
	if r.status != 0 {
		t.Fatalf("%s: status %d: %s%s", r.line, r.status, r.out, r.stderr)
	}
	return r.out
}

// withCold does something to a store.
func withCold(t *testing.T, s settings.Settings, do func(ctx context.Context, c engine.Cold)) {
	t.Helper()
	c := store.Cold(&s)
	if err := c.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	do(t.Context(), c)
}

// dump is all that a store holds of timers, tasks and progress, in words.
func dump(t *testing.T, s settings.Settings) string {
	t.Helper()
	var b strings.Builder
	var used [engine.Shards]bool // the watermark of a shard without timers says nothing
	withCold(t, s, func(ctx context.Context, c engine.Cold) {
		lives, err := c.Lives(ctx, 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lives {
			used[l.ID.Shard()] = true
			if l.Deleted == 0 {
				fmt.Fprintf(&b, "timer %x\n", engine.AppendTimer(nil, l.Versions[len(l.Versions)-1]))
			}
		}
		var owed []string
		err = c.Owed(ctx, engine.AllShards, -1, engine.MaxDue, func(os []engine.Owed) error {
			for i := range os {
				owed = append(owed, fmt.Sprintf("owed %v %x\n", os[i].Key, engine.AppendOwed(nil, &os[i])))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(owed)
		b.WriteString(strings.Join(owed, ""))
		for before := (engine.Key{}); ; {
			ts, next, err := c.Tasks(ctx, engine.TaskFilter{}, before, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range ts {
				fmt.Fprintf(&b, "task %v %x\n", k.Key, engine.AppendTask(nil, k))
			}
			if before = next; before == (engine.Key{}) {
				break
			}
		}
		leftOut, err := c.LeftOut(ctx, 0, engine.MaxDue)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "left out %v\n", leftOut)
		shards, err := c.Shards(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i, sh := range shards {
			if used[i] {
				fmt.Fprintf(&b, "shard %d %d\n", i, sh.Watermark)
			}
		}
	})
	return b.String()
}

// variety are timers of every kind, on the way at now.
func variety(t *testing.T, now int64) (ts []*engine.Timer) {
	t.Helper()
	var ids engine.IDs
	add := func(change func(*engine.Timer)) {
		d := engine.NewDefinition()
		d.App, d.Name = "a", fmt.Sprintf("n%02d <&>\u2028z", len(ts))
		d.Callback.URL = "http://127.0.0.1:9/?a=1&b=<2>"
		d.Schedule.Every = time.Hour
		k := &engine.Timer{Definition: d, ID: ids.Next(now, engine.AllShards), Version: 1, Generation: 1, CreatedAt: now - 5_000_000, UpdatedAt: now - 4_000_000}
		change(k)
		reason, status, from := k.Reason, k.Status, k.ValidFrom
		if err := plan.Resolve(k, nil, now-3_600_000); err != nil {
			t.Fatal(err)
		}
		k.Reason, k.Status, k.ValidFrom = reason, status, max(from, k.ValidFrom)
		ts = append(ts, k)
	}
	one := func(k *engine.Timer) { k.Schedule = engine.Schedule{} }
	add(func(*engine.Timer) {})
	add(func(k *engine.Timer) {
		k.Schedule.StartAt, k.Schedule.EndAt, k.Schedule.MaxRuns = now-7e6+1, now+9e8, 500
	})
	add(func(k *engine.Timer) {
		k.Schedule = engine.Schedule{Cron: "*/5 * * * MON", TimeZone: "Asia/Shanghai", Jitter: 1234 * time.Millisecond}
	})
	add(func(k *engine.Timer) { one(k); k.Schedule.At = now + 77_777 })
	add(func(k *engine.Timer) { one(k); k.Schedule.At = now - 1_000_000 }) // finished: W is later
	add(func(k *engine.Timer) { one(k); k.Schedule.HasDelay, k.Schedule.Delay = true, 3*time.Hour })
	add(func(k *engine.Timer) { k.Status, k.Reason, k.Version, k.Generation = engine.Disabled, "by hand", 7, 3 })
	add(func(k *engine.Timer) { k.Reason, k.ValidFrom = "until later", now+50_000_000 })
	add(func(k *engine.Timer) { k.Status = engine.Finished; one(k); k.Schedule.At = now - 2_000_000 })
	for n, kind := range []engine.BodyKind{engine.BodyJSON, engine.BodyText, engine.BodyBase64} {
		for m, body := range []string{`{"a":[1.50,"\u00e4<>"],"b":null}`, ""} {
			if kind != engine.BodyJSON || m == 0 {
				add(func(k *engine.Timer) {
					k.Callback.HasBody, k.Callback.BodyKind, k.Callback.Body = true, kind, []byte(body)
					k.Callback.Headers = []engine.Header{{Name: "A", Value: "1"}, {Name: "x-b", Value: "ä"}}
					k.Priority, k.Overlap, k.Delivery = n, engine.Overlap(n), engine.Delivery(m)
				})
			}
		}
	}
	add(func(k *engine.Timer) {
		k.Retry = engine.Retry{MaxAttempts: 1, Backoff: 1500 * time.Microsecond, Multiplier: 1.25, MaxBackoff: time.Second, MaxAge: time.Hour}
		k.Misfire = engine.Misfire{Policy: engine.MisfireSkip}
		k.Labels = []engine.Label{{Key: "env", Value: ""}, {Key: "team", Value: "a"}}
		k.Callback.Success, k.Callback.Timeout = "200,301-399", 10*time.Millisecond
		k.Priority, k.StaleAfter = 0, 10*time.Millisecond
	})
	return ts
}

// fillStore makes a store with all that one can hold, as a server leaves it.
func fillStore(t *testing.T, dir string, now int64) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, scheduler.JournalFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	withCold(t, settings.Settings{DataDir: dir}, func(ctx context.Context, c engine.Cold) {
		shards, _, err := c.Take(ctx, "xtimer")
		if err != nil {
			t.Fatal(err)
		}
		minute := now - now%60_000
		st := engine.Settlement{Owner: "xtimer", LeftOut: []int64{minute - 120_000, minute - 60_000}}
		for i, sh := range shards {
			st.Marks = append(st.Marks, engine.Mark{Shard: i, Fence: sh.Fence, W: now - int64(i)*100})
		}
		for n, k := range variety(t, now) {
			ch := &engine.Change{Timer: k, ID: k.ID, At: k.UpdatedAt}
			task := engine.Task{
				Key: engine.Key{Timer: k.ID, Due: now - 60_000 - int64(n)}, App: k.App, Name: k.Name, Generation: k.Generation,
				Status: engine.Retrying, Lateness: 12345, NotBefore: now + 600_000, Since: now - 60_000,
				Attempts: []engine.Attempt{
					{N: 1, Started: now*1000 + 7, Took: 123456, ErrorClass: "timeout", Phases: engine.Phases{Wheel: 7 * time.Microsecond, Read: time.Hour}},
					{N: 2, Started: now*1000 + 9, Took: 3, Code: 503, ErrorClass: "status", Response: []byte{0, 0xff, '<'}},
				},
			}
			switch n {
			case 0: // a retry that is under way
				ch.Owe = append(ch.Owe, engine.Owed{Key: task.Key, Generation: 1, NotBefore: task.NotBefore, Task: &task})
				st.Tasks = append(st.Tasks, engine.Record{Key: task.Key, Status: task.Status, Encoded: engine.AppendTask(nil, &task)})
			case 1: // manual, begun
				ch.Owe = append(ch.Owe, engine.Owed{Key: task.Key, Generation: 1, Origin: engine.FromManual, NotBefore: now, Begun: true})
			case 2: // a range of the coming week, as a clock that was set back leaves it
				ch.Owe = append(ch.Owe, engine.Owed{Key: engine.Key{Timer: k.ID, Due: now}, To: now + 8*24*3_600_000, Generation: 1, NotBefore: now})
			default:
				task.Status, task.NotBefore, task.Ended, task.Reason = engine.Succeeded+engine.TaskStatus(n%7), 0, now, "max_attempts"
				if task.Status.IsFailure() {
					task.Dismissed, task.DismissedBy = now+1, "somebody"
				}
				st.Tasks = append(st.Tasks, engine.Record{Key: task.Key, Status: task.Status, Encoded: engine.AppendTask(nil, &task)})
			}
			if a, err := c.Apply(ctx, ch); err != nil || a.Err != nil {
				t.Fatal(err, a.Err)
			}
		}
		if err := c.Settle(ctx, &st); err != nil {
			t.Fatal(err)
		}
	})
}

// same fails unless two stores hold the same.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s: line %d of %d, %d:\n got %s\nwant %s", what, i, len(g), len(w), g[i], w[i])
		}
	}
	t.Fatalf("%s: %d lines, want %d", what, len(g), len(w))
}

// unhurried lets a database be used that was left a moment ago.
func unhurried(t *testing.T) {
	was := store.MarkedWithin
	store.MarkedWithin = 0
	t.Cleanup(func() { store.MarkedWithin = was })
}

// TestRoundTrip: what goes from a store to another of any kind is what it was.
func TestRoundTrip(t *testing.T) {
	unhurried(t)
	from := t.TempDir()
	fillStore(t, from, time.Now().UnixMilli())
	file := must(t, "", "export", "--data-dir", from, "--history")
	want := dump(t, settings.Settings{DataDir: from})
	if n := strings.Count(want, "owed"); n < 3 {
		t.Fatalf("%d rows are owed, the test is too easy:\n%s", n, want)
	}

	there := t.TempDir()
	must(t, file, "import", "--data-dir", there, "-q")
	same(t, "local to local", dump(t, settings.Settings{DataDir: there}), want)
	r := cli(t, file, "import", "--data-dir", there)
	r.want(0, "0 created, 15 unchanged, 0 skipped, 0 conflict, 0 failed")
	same(t, "imported twice", dump(t, settings.Settings{DataDir: there}), want)

	t.Run("MySQL", func(t *testing.T) {
		db := servertest.MariaDB(t)
		dsn := db.DSN("new")
		must(t, file, "import", "--mysql-dsn", dsn, "-q")
		same(t, "local to MySQL", dump(t, settings.Settings{MySQLDSN: dsn}), want)
		cli(t, file, "import", "--mysql-dsn", dsn).want(0, "0 created, 15 unchanged")
		same(t, "imported twice", dump(t, settings.Settings{MySQLDSN: dsn}), want)

		// Back again, as from a server that ran on it, with its journal.
		cli(t, "", "export", "--mysql-dsn", dsn).want(exit.StatusUsage, "--data-dir")
		journal := t.TempDir()
		if err := os.Mkdir(filepath.Join(journal, scheduler.JournalFolder), 0o700); err != nil {
			t.Fatal(err)
		}
		file := must(t, "", "export", "--mysql-dsn", dsn, "--data-dir", journal, "--history")
		want := dump(t, settings.Settings{MySQLDSN: dsn})
		back := t.TempDir()
		must(t, file, "import", "--data-dir", back, "-q")
		same(t, "MySQL to local", dump(t, settings.Settings{DataDir: back}), want)

		testOriginal(t, db)
	})
}

// testOriginal imports the table of an original XTimer.
func testOriginal(t *testing.T, db *servertest.Server) {
	dsn := db.DSN("original")
	db.Do("USE original; CREATE TABLE `timer` (" + `
		id bigint unsigned NOT NULL AUTO_INCREMENT COMMENT '主键', created_at datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
		updated_at datetime NOT NULL DEFAULT CURRENT_TIMESTAMP, deleted_at datetime DEFAULT NULL, app varchar(128) NOT NULL,
		name varchar(256) NOT NULL, status tinyint NOT NULL DEFAULT '0' COMMENT '1 未激活, 2 激活', cron varchar(256) NOT NULL,
		notify_http_param varchar(4096) DEFAULT NULL, PRIMARY KEY (id)) DEFAULT CHARSET=utf8mb4;
		INSERT INTO timer (app,name,status,cron,notify_http_param,deleted_at) VALUES
		('pay','early',2,'0 30 9 ? * MON-FRI *','{"method":"POST","url":"http://h/a","header":{"X-A":"1"},"body":"{\\"b\\":1}"}',NULL),
		('pay','off',1,'*/10 * * * * * *','{"method":"GET","url":"http://h/b"}',NULL),
		('pay','years',2,'0 0 0 1 1 * 2098,2030','{"method":"GET","url":"http://h/c"}',NULL),
		('pay','past',2,'0 0 0 1 1 * 2020','{"method":"GET","url":"http://h/d"}',NULL),
		('pay','gone',2,'0 * * * * * *','{"method":"GET","url":"http://h/e"}','2024-01-02 03:04:05'),
		('pay','last',2,'0 0 0 40 * * *','{"method":"GET","url":"http://h/f"}',NULL),
		('pay','url',2,'0 * * * * * *','{"method":"GET","url":"ftp://h/f"}',NULL),
		('pay','param',2,'0 * * * * * *','url=http://h',NULL)`)
	args := []string{"import", "--from-xtimer-mysql", dsn, "--time-zone", "Asia/Shanghai"}
	cli(t, "", args[:3]...).want(exit.StatusUsage, "--time-zone")
	to := t.TempDir()
	args = append(args, "--data-dir", to)
	cli(t, "", append(args, "--dry-run")...).want(exit.StatusPartly, "4 created", "2 skipped", "3 failed (nothing was changed)")
	cli(t, "", args...).want(exit.StatusPartly, "4 created", "2 skipped", "timer 5: pay/gone: the timer is deleted", "timer 4: pay/past: ",
		"timer 6: pay/last: schedule.cron: day of month field: ", "timer 7: pay/url: callback.url: ", "timer 8: pay/param: notify_http_param: ")
	cli(t, "", args...).want(exit.StatusPartly, "0 created, 4 unchanged, 2 skipped, 0 conflict, 3 failed")

	s := newShell(t)
	args[len(args)-2], args[len(args)-1] = "--server", s.url
	cli(t, "", args...).want(exit.StatusPartly, "4 created", "2 skipped", "3 failed")
	cli(t, "", args...).want(exit.StatusPartly, "0 created, 4 unchanged, 2 skipped, 0 conflict, 3 failed")
	list := s.do("timer", "list", "-o", "json")
	for _, w := range []string{
		`"cron": "0 30 9 ? * MON-FRI"`, `"time_zone": "Asia/Shanghai"`, `"body_text": "{\"b\":1}"`, `"X-A": "1"`, `"name": "years-2098"`,
		`"start_at": "2029-12-31T16:00:00.000Z"`, `"end_at": "2030-12-31T15:59:59.999Z"`, `"status": "disabled"`, `"original": "2"`,
	} {
		if !strings.Contains(list, w) {
			t.Errorf("%s is missing in %s", w, list)
		}
	}
}

// unfinished are the dues of a timer up to to that a start would find to do:
// those that the plan derives after the watermark, and those that are owed.
func unfinished(t *testing.T, dir string, id engine.TimerID, to int64) (dues []int64) {
	t.Helper()
	withCold(t, settings.Settings{DataDir: dir}, func(ctx context.Context, c engine.Cold) {
		k, err := c.Timer(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Of(k)
		if err != nil {
			t.Fatal(err)
		}
		shards, err := c.Shards(ctx)
		if err != nil {
			t.Fatal(err)
		}
		between := func(from, to int64) {
			for due, ok := p.Next(from); ok && due <= to; due, ok = p.Next(due) {
				dues = append(dues, due)
			}
		}
		rows, err := c.OwedPage(ctx, id, -1, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rows {
			if o.To != 0 {
				between(o.Key.Due-1, min(o.To, to))
			} else {
				dues = append(dues, o.Key.Due)
			}
		}
		between(shards[id.Shard()].Watermark, to)
	})
	return dues
}

// TestWatermarks: a timer that comes into a store which is ahead of its own, or
// behind, has neither finished dues again nor unfinished ones forgotten.
func TestWatermarks(t *testing.T) {
	now := time.Now().UnixMilli()
	const f = 100_000 // the export stands so many ms ago
	for _, c := range []struct {
		name   string
		ahead  int64 // of the store here, against the export
		policy engine.MisfirePolicy
		want   func(due int64) bool // of dues later than the export
	}{
		{"behind", -50_000, engine.MisfireLatest, func(int64) bool { return true }},
		{"never used", math.MinInt64, engine.MisfireLatest, func(int64) bool { return true }},
		{"level", 0, engine.MisfireLatest, func(int64) bool { return true }},
		{"ahead, all", 50_000, engine.MisfireAll, func(int64) bool { return true }},
		{"ahead, skip", 50_000, engine.MisfireSkip, func(due int64) bool { return due > now-f+50_000 }},
		{"ahead, latest", 50_000, engine.MisfireLatest, func(due int64) bool { return due > now-f+50_000-1000 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := engine.NewDefinition()
			d.App, d.Name, d.Schedule.Every, d.Callback.URL, d.Misfire.Policy = "a", "n", time.Second, "http://127.0.0.1:9/", c.policy
			k := &engine.Timer{Definition: d, ID: 4711 << 30, Version: 1, Generation: 1, CreatedAt: now - 200_000}
			if err := plan.Resolve(k, nil, now-200_000); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			withCold(t, settings.Settings{DataDir: dir}, func(ctx context.Context, cold engine.Cold) {
				other := *k // so that the watermarks here are in use
				other.ID, other.Name, other.Status = k.ID+1, "other", engine.Disabled
				if a, err := cold.Apply(ctx, &engine.Change{Timer: &other, ID: other.ID}); err != nil || a.Err != nil {
					t.Fatal(err, a.Err)
				}
				if c.ahead == math.MinInt64 {
					return
				}
				m := engine.Mark{Shard: k.ID.Shard(), W: now - f + c.ahead}
				if err := cold.Settle(ctx, &engine.Settlement{Marks: []engine.Mark{m}}); err != nil {
					t.Fatal(err)
				}
			})
			file := fmt.Sprintf(`{"app":"a","name":"n","schedule":{"every":"1s"},"callback":{"url":"http://127.0.0.1:9/"},"misfire":{"policy":"%s"},`+
				`"stored":{"id":"%d","version":1,"generation":1,"status":"enabled","valid_from":%d,"anchor":%d,"created_at":%d,"updated_at":%d,"finished_to":%d}}`+"\n",
				c.policy, k.ID, k.ValidFrom, k.Anchor, k.CreatedAt, k.UpdatedAt, now-f)
			for _, result := range []string{"1 created, 0 unchanged", "0 created, 1 unchanged"} {
				cli(t, file, "import", "--data-dir", dir).want(0, result)
				var want []int64
				for due := now - f + 1000; due <= now; due += 1000 {
					if c.want(due) {
						want = append(want, due)
					}
				}
				if got := unfinished(t, dir, k.ID, now); !slices.Equal(got, want) {
					t.Errorf("%s:\n got %v\nwant %v", result, got, want)
				}
			}
			if !strings.HasPrefix(c.name, "ahead") || c.policy == engine.MisfireAll {
				return
			}
			withCold(t, settings.Settings{DataDir: dir}, func(ctx context.Context, cold engine.Cold) {
				r, err := cold.LastTask(ctx, k.ID)
				if err != nil {
					t.Fatal(err)
				}
				skipped := int64(50)
				if c.policy == engine.MisfireLatest {
					skipped--
				}
				if r.Count != skipped || r.Status != engine.Skipped || r.Key.Due != now-f+1000 || r.DueLast != now-f+skipped*1000 {
					t.Errorf("recorded: %+v", r)
				}
			})
		})
	}
}

// TestImportWithoutHistory: of what was called before a store's timers came here, and
// has no record here, verify says that it is unproven, and no gap.
func TestImportWithoutHistory(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	old := t.TempDir()
	s := serves(t, "--data-dir", old)
	for name, schedule := range map[string]object{"often": {"every": "20ms"}, "twice": {"every": "20ms", "max_runs": 2}, "once": {"delay": "1ms"}, "late": {"at": time.Now().Add(-time.Hour).UnixMilli()}} {
		s.post("/v1/timers", object{"app": "a", "name": name, "schedule": schedule, "callback": object{"url": receiver.URL}}, nil)
	}
	verdict := func(args ...string) (v api.Verdict) {
		t.Helper()
		lines := strings.SplitAfter(strings.TrimSpace(must(t, "", append([]string{"verify", "--json", "--from", "24h"}, args...)...)), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &v); err != nil || v.Verdict != "proven" {
			t.Fatal(err, lines)
		}
		return v
	}
	for end := time.Now().Add(30 * time.Second); verdict("--server", s.url).Dues < 20; {
		if time.Now().After(end) {
			t.Fatal("no twenty dues in 30 s")
		}
	}
	s.signal(syscall.SIGTERM)
	s.ends()

	bare, file := must(t, "", "export", "--data-dir", old), must(t, "", "export", "--data-dir", old, "--history")
	made := func(file string, args ...string) string {
		t.Helper()
		dir := t.TempDir()
		cli(t, file, append([]string{"import", "--data-dir", dir}, args...)...).want(0, "4 created")
		return dir
	}
	to := made(bare)
	v := verdict("--data-dir", to)
	if v.Records != 0 || v.Timers != 4 || v.Found["unproven"] < 10 {
		t.Errorf("without history: %+v", v)
	}
	withCold(t, settings.Settings{DataDir: to}, func(ctx context.Context, c engine.Cold) {
		if m, err := c.LeftOut(ctx, 0, engine.MaxDue); err != nil || len(m) < 60 || len(m) > 70 {
			t.Errorf("%d minutes are left out, %v", len(m), err)
		}
	})
	if v := verdict("--data-dir", made(file)); v.Records < 20 || v.Found["unproven"] != 0 {
		t.Errorf("with history: %+v", v)
	}
	// A second import says nothing of timers that are there.
	cli(t, bare, "import", "--data-dir", to).want(0, "4 unchanged")
	if again := verdict("--data-dir", to); again.Found["unproven"] != v.Found["unproven"] {
		t.Errorf("imported twice: %+v, once: %+v", again, v)
	}
	leftOut := func(dir, why string) {
		t.Helper()
		withCold(t, settings.Settings{DataDir: dir}, func(ctx context.Context, c engine.Cold) {
			if m, err := c.LeftOut(ctx, 0, engine.MaxDue); err != nil || len(m) > 0 {
				t.Errorf("%s: left out: %v, %v", why, m, err)
			}
		})
	}
	leftOut(made(bare, "--history-retention", "0s"), "nobody asks for what is older")
	to = made(file)
	cli(t, bare, "import", "--data-dir", to).want(0, "4 unchanged")
	leftOut(to, "the records are there")
	// One that is cut short has said it of what it made.
	to = t.TempDir()
	torn := io.MultiReader(strings.NewReader(bare), iotest.ErrReader(errors.New("the pipe broke")))
	cliFrom(t, torn, "import", "--data-dir", to).want(1, "can be repeated", "the pipe broke")
	cli(t, bare, "import", "--data-dir", to).want(0, "4 unchanged")
	verdict("--data-dir", to)
}

// TestDryRunMakesNothing: where there is no store, a dry run makes none.
func TestDryRunMakesNothing(t *testing.T) {
	from, empty := t.TempDir(), t.TempDir()
	fillStore(t, from, time.Now().UnixMilli())
	file := must(t, "", "export", "--data-dir", from)
	none := filepath.Join(empty, "none")
	for _, dir := range []string{none, empty} {
		cli(t, file, "import", "--dry-run", "--data-dir", dir).want(0, "15 created", "(nothing was changed)")
	}
	if there, err := os.ReadDir(empty); err != nil || len(there) > 0 {
		t.Errorf("a dry run leaves %v, %v", there, err)
	}
}

// TestImportConflicts: what is there already stays as it is.
func TestImportConflicts(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	fillStore(t, from, time.Now().UnixMilli())
	file := must(t, "", "export", "--data-dir", from, "--name-prefix", "n00")
	if n := strings.Count(file, "\n"); n != 1 {
		t.Fatalf("%d lines", n)
	}
	must(t, file, "import", "--data-dir", to)
	was := dump(t, settings.Settings{DataDir: to})
	plain := `{"app":"b","name":"p","schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/"}}`
	for _, c := range []struct {
		line   string
		result string
		words  string
	}{
		{strings.Replace(file, `"every":"1h"`, `"every":"2h"`, 1), "conflict", "another definition, version 1"},
		{strings.Replace(file, `"name":"n00`, `"name":"m00`, 1), "conflict", "belongs to the timer a/n00"},
		{strings.NewReplacer(`"id":"1`, `"id":"2`, `"key":"1`, `"key":"2`).Replace(file), "conflict", "has another id"},
		{strings.Replace(file, `"id":"1`, `"id":"91`, 1), "failed", "is not an id that xtimer generates"},
		{strings.Replace(file, `"every":"1h"`, `"every":"1ms"`, 1), "failed", "schedule.every"},
		{strings.Replace(file, `"origin":"schedule"`, `"origin":"fate"`, 1), "failed", `"fate"`},
		{strings.Replace(plain, `"every"`, `"evry"`, 1), "failed", "schedule.evry"},
		{strings.Replace(plain, `http:`, `ftp:`, 1), "failed", "callback.url"},
		{`{"app":`, "failed", "the line is not a timer"},
		{strings.Replace(plain, `"callback"`, `"stored":{"id":"1","version":1,"status":"enabled","finished":true},"callback"`, 1), "skipped", "finished"},
	} {
		for _, dry := range []string{"--dry-run", "--dry-run=false"} {
			r := cli(t, "\n"+c.line, "import", "--data-dir", to, dry)
			status := 1
			if c.result == "skipped" {
				status = 0
			}
			r.want(status, c.result+" ", "line 2: ", c.words, "1 "+c.result)
		}
	}
	same(t, "after conflicts", dump(t, settings.Settings{DataDir: to}), was)
	cli(t, plain+"\n"+file, "import", "--data-dir", to, "--dry-run").want(0, "created    line 1: b/p", "1 created, 1 unchanged")
	same(t, "after a dry run", dump(t, settings.Settings{DataDir: to}), was)
	cli(t, plain+"\nx\n", "import", "--data-dir", to).want(exit.StatusPartly, "1 of 2 failed", "1 created")
	cli(t, plain, "import", "--data-dir", to).want(0, "1 unchanged")
	if r := cli(t, plain+"\nx\n", "import", "--data-dir", to, "-q"); strings.Contains(r.out, "b/p") || !strings.Contains(r.out, "line 2") {
		t.Errorf("-q: %s", r.out)
	}
}

// TestImportTwice: what a dry run says of lines that meet each other is what becomes
// of them, in a server and in a store.
func TestImportTwice(t *testing.T) {
	from, server := t.TempDir(), newShell(t)
	fillStore(t, from, time.Now().UnixMilli())
	whole := must(t, "", "export", "--data-dir", from, "--name-prefix", "n00")
	plain := func(name, every string) string {
		return fmt.Sprintf(`{"app":"b","name":%q,"schedule":{"every":%q},"callback":{"url":"http://127.0.0.1:9/"}}`+"\n", name, every)
	}
	results := func(r result) (words []string) {
		for l := range strings.Lines(r.out) {
			words = append(words, strings.Fields(l)[0])
		}
		return words
	}
	for _, c := range []struct {
		name, file string
		servers    bool // and not of stores alone, which keep ids
		want       string
	}{
		{"the same", plain("p", "1h") + plain("p", "60m"), true, "1 created, 1 unchanged"},
		{"another definition", plain("q", "1h") + plain("q", "2h") + plain("q", "1h"), true, "line 2: b/q: the timer of that name of line 1 has another definition\nunchanged  line 3"},
		{"never due", `{"app":"b","name":"leap","schedule":{"cron":"0 3 31 2 *"},"callback":{"url":"http://127.0.0.1:9/"}}` + "\n", true, "failed     line 1: b/leap: schedule.cron: \"0 3 31 2 *\" has no due"},
		{"refused", plain("fast", "1ms") + plain("slow", "1h") + strings.Replace(plain("ftp", "1h"), "http:", "ftp:", 1), true, "1 created, 0 unchanged, 0 skipped, 0 conflict, 2 failed"},
		{"long over", `{"app":"b","name":"late","schedule":{"at":"2020-01-01T00:00:00Z"},"callback":{"url":"http://127.0.0.1:9/"}}` + "\n", true, "failed     line 1: b/late: schedule.at: "},
		{"ended", `{"app":"b","name":"end","schedule":{"every":"1h","end_at":"2020-01-01T00:00:00Z"},"callback":{"url":"http://127.0.0.1:9/"}}` + "\n", true, "line 1: b/end"},
		{"no name", plain("", "5h"), true, "failed     line 1"},
		{"the same of a store", whole + whole, true, "1 created, 1 unchanged"},
		{"an id of another name", whole + strings.Replace(whole, `"name":"n00`, `"name":"m00`, 1), false, "belongs to the timer a/n00"},
		{"another id", whole + strings.NewReplacer(`"id":"1`, `"id":"2`, `"key":"1`, `"key":"2`).Replace(whole), false, "of line 1 has another id"},
	} {
		targets := [][]string{{"--data-dir", t.TempDir()}}
		if c.servers {
			targets = append(targets, []string{"--server", server.url})
		}
		for _, target := range targets {
			dry := cli(t, c.file, append([]string{"import", "--dry-run"}, target...)...)
			done := cli(t, c.file, append([]string{"import"}, target...)...)
			if !strings.Contains(dry.out, c.want) || !slices.Equal(results(dry), results(done)) || dry.status != done.status {
				t.Errorf("%s, %s: a dry run says\n%s\nand the run\n%s", c.name, target[0], dry.out, done.out)
			}
		}
	}
}

// TestExportFilters, of a store.
func TestExportFilters(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir, time.Now().UnixMilli())
	for args, want := range map[string]int{
		"": 15, "--app a": 15, "--app b": 0, "--status disabled": 2, "--status finished": 2, "--status enabled": 11,
		"--label team=a": 1, "--label team!=a": 14, "--label team=a,env!=x": 1, "--name-prefix n1": 5, "--search N1": 5, "--search 1": 6, "--search none": 0,
	} {
		out := must(t, "", append([]string{"export", "--data-dir", dir}, strings.Fields(args)...)...)
		if n := strings.Count(out, "\n"); n != want {
			t.Errorf("%q: %d timers, want %d", args, n, want)
		}
	}
	for _, args := range []string{"--label team", "--history --status enabled", "--history --search n", "--status Enabled", "--server http://127.0.0.1:9"} {
		cli(t, "", append([]string{"export", "--data-dir", dir}, strings.Fields(args)...)...).want(exit.StatusUsage)
	}
	none := t.TempDir()
	cli(t, "", "export", "--data-dir", none).want(exit.StatusUsage, "xtimer: "+none+" is not the data directory")
}

// TestExportOfImport: a store that no server has used yet is one, unless it is half of
// a backup.
func TestExportOfImport(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	fillStore(t, from, time.Now().UnixMilli())
	must(t, must(t, "", "export", "--data-dir", from, "--history"), "import", "--data-dir", to)
	file, back := must(t, "", "export", "--data-dir", to, "--history"), t.TempDir()
	cli(t, file, "import", "--data-dir", back).want(0, "15 created")
	same(t, "exported before a server ran", dump(t, settings.Settings{DataDir: back}), dump(t, settings.Settings{DataDir: to}))
	if err := os.Mkdir(filepath.Join(to, store.RestoringFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "export", "--data-dir", to).want(1, "a restore was interrupted")
}

// TestDatabaseInUse: a store that a server uses is left alone.
func TestDatabaseInUse(t *testing.T) {
	dir := t.TempDir()
	serves(t, "--data-dir", dir)
	cli(t, "", "export", "--data-dir", dir).want(1, "another xtimer uses", "--server")
	cli(t, "{}", "import", "--data-dir", dir).want(1, "another xtimer uses", "--server")
}

// TestServerToServer: definitions, and what is disabled.
func TestServerToServer(t *testing.T) {
	from, to := newShell(t), newShell(t)
	to2 := t.TempDir()
	create := func(args ...string) {
		from.do(append([]string{"timer", "create", "--app", "a", "--url", "http://127.0.0.1:9/x"}, args...)...)
	}
	create("--name", "cron", "--cron", "0 9 * * MON-FRI", "--time-zone", "Asia/Shanghai", "--label", "team=a")
	create("--name", "off", "--every", "1h", "--body", `{"a":[1,2]}`)
	create("--name", "delay", "--delay", "6h")
	create("--name", "later", "--every", "1h")
	from.do("timer", "disable", "a/off", "--reason", "by hand")
	from.do("timer", "disable", "a/later", "--reason", "a while", "--until", "2090-01-02T03:04:05Z")
	file := from.do("export")
	if got := from.do("export", "--label", "team=a"); strings.Count(got, "\n") != 1 {
		t.Errorf("got %s", got)
	}
	to.run(file, "import", "--dry-run").want(0, "4 created", "(nothing was changed)")
	to.run(file, "import").want(0, "4 created, 0 unchanged")
	to.run(file, "import").want(0, "0 created, 4 unchanged")
	to.run(file, "import", "--dry-run").want(0, "0 created, 4 unchanged")
	cli(t, file, "import", "--data-dir", to2).want(0, "4 created")
	cli(t, file, "import", "--data-dir", to2).want(0, "4 unchanged")
	to.do("timer", "get", "a/off")
	r := to.run("", "timer", "list", "-o", "json")
	r.want(0, `"status": "disabled"`, `"reason": "by hand"`, `"disabled_until": "2090-01-02T03:04:05Z"`)
	// The delay goes on to its end, and does not begin again.
	at := func(s *shell) string {
		_, after, _ := strings.Cut(s.do("timer", "get", "a/delay", "-o", "json"), `"next_due": `)
		due, _, _ := strings.Cut(after, "\n")
		return due
	}
	if at(from) != at(to) || at(to) == "" {
		t.Errorf("the delay ends at %q, now at %q", at(from), at(to))
	}
	changed := strings.Replace(file, `0 9 * * MON-FRI`, `0 8 * * MON-FRI`, 1)
	to.run(changed, "import").want(exit.StatusPartly, "conflict", "1 of 4 failed")
	to.run(changed, "import", "--dry-run").want(exit.StatusPartly, "conflict", "schedule.cron differs")
}

// TestDisabledAtLast: an import that ended between the create of a timer and its disable
// is completed by the next one, which leaves alone what somebody has changed since.
func TestDisabledAtLast(t *testing.T) {
	s := newShell(t)
	create := func(name string) {
		s.do("timer", "create", "--app", "a", "--name", name, "--url", "http://127.0.0.1:9/x", "--every", "1h")
	}
	create("made")
	create("enabled")
	for _, name := range []string{"a/made", "a/enabled"} {
		s.do("timer", "disable", name, "--reason", "by hand")
	}
	file := s.do("export")
	s.do("timer", "enable", "a/enabled")
	s.do("timer", "delete", "a/made", "--yes")
	create("made")
	status := func(name string) string {
		_, after, _ := strings.Cut(s.do("timer", "get", name, "-o", "json"), `"status": "`)
		word, _, _ := strings.Cut(after, `"`)
		return word
	}
	s.run(file, "import", "--dry-run").want(0, "2 unchanged")
	if got := status("a/made"); got != "enabled" {
		t.Errorf("after a dry run it is %s", got)
	}
	s.run(file, "import").want(0, "2 unchanged")
	if got := status("a/made"); got != "disabled" {
		t.Errorf("what was made and not disabled is %s", got)
	}
	if got := status("a/enabled"); got != "enabled" {
		t.Errorf("what somebody enabled is %s", got)
	}
}

// TestRecordsForServer: a server takes no history, and no timer fails for that.
func TestRecordsForServer(t *testing.T) {
	from, to := t.TempDir(), newShell(t)
	fillStore(t, from, time.Now().UnixMilli())
	withCold(t, settings.Settings{DataDir: from}, func(ctx context.Context, c engine.Cold) {
		if err := c.Settle(ctx, &engine.Settlement{Owner: "xtimer", LeftOut: []int64{60_000}}); err != nil {
			t.Fatal(err)
		}
	})
	file := must(t, "", "export", "--data-dir", from, "--history")
	r := to.run(file, "import")
	r.want(0, " 0 failed", "a server does not accept records of tasks")
}

// TestFiresAfterImport: a server on an imported store calls what is to come and
// what is owed, and nothing else.
func TestFiresAfterImport(t *testing.T) {
	var mu sync.Mutex
	var called []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		called = append(called, r.Header.Get("X-Xtimer-Name")+" "+r.Header.Get("Idempotency-Key"))
	}))
	t.Cleanup(receiver.Close)

	from, to := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(from, scheduler.JournalFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	soon := now + 5000
	var want []string
	withCold(t, settings.Settings{DataDir: from}, func(ctx context.Context, c engine.Cold) {
		for n, x := range []struct {
			name string
			due  int64
			owed bool
			set  func(*engine.Timer)
		}{
			{"finished", now - 5000, false, nil},
			{"owed", now - 4000, true, nil},
			{"disabled", now + 4000, false, func(k *engine.Timer) { k.Status = engine.Disabled }},
			{"last", soon, false, nil},
		} {
			d := engine.NewDefinition()
			d.App, d.Name, d.Schedule.At, d.Callback.URL = "a", x.name, x.due, receiver.URL
			k := &engine.Timer{Definition: d, ID: engine.TimerID(n+1) << 40, Version: 1, Generation: 1, CreatedAt: now - 9000}
			if err := plan.Resolve(k, nil, now-9000); err != nil {
				t.Fatal(err)
			}
			if x.set != nil {
				x.set(k)
			}
			ch := &engine.Change{Timer: k, ID: k.ID, At: now}
			key := engine.Key{Timer: k.ID, Due: x.due}
			if x.owed {
				ch.Owe = []engine.Owed{{Key: key, Generation: 1, NotBefore: x.due}}
			}
			if x.owed || x.due == soon {
				want = append(want, x.name+" "+key.String())
			}
			if a, err := c.Apply(ctx, ch); err != nil || a.Err != nil {
				t.Fatal(err, a.Err)
			}
		}
		st := engine.Settlement{}
		for i := range engine.Shards {
			st.Marks = append(st.Marks, engine.Mark{Shard: i, W: now})
		}
		if err := c.Settle(ctx, &st); err != nil {
			t.Fatal(err)
		}
	})
	must(t, must(t, "", "export", "--data-dir", from), "import", "--data-dir", to)
	serves(t, "--data-dir", to)
	// The last due is later than all the others: what would be called before it
	// would have been.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		done := slices.ContainsFunc(called, func(s string) bool { return strings.HasPrefix(s, "last") })
		got := slices.Clone(called)
		mu.Unlock()
		if done {
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("called %q, want %q", got, want)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("called %q, want %q", got, want)
		}
	}
}

// TestExportUnderWay: a delay whose one call is under way is exported with its due,
// which has passed: it is called again where it is imported, and not a delay later.
func TestExportUnderWay(t *testing.T) {
	called, answer := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(called); <-answer }))
	defer slow.Close()
	defer close(answer)
	s := newShell(t)
	s.do("timer", "create", "--app", "a", "--name", "n", "--delay", "10ms", "--url", slow.URL)
	<-called
	var l struct{ Stored *struct{ At int64 } }
	if out := s.do("export"); json.Unmarshal([]byte(strings.SplitAfter(out, "\n")[0]), &l) != nil || l.Stored == nil {
		t.Fatal(out)
	}
	if now := time.Now().UnixMilli(); l.Stored.At > now || l.Stored.At < now-60_000 {
		t.Errorf("exported with due %d, now is %d", l.Stored.At, now)
	}
}
