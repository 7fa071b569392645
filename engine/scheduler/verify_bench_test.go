package scheduler_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/verify"
	"xtimer/tier/local"
)

// BenchmarkVerify verifies a store of 1,000,000 timers with a record each: half
// of them one-shots, half hourly.
func BenchmarkVerify(b *testing.B) {
	const timers = 1_000_000
	ctx := context.Background()
	cold := local.New(local.Config{Dir: b.TempDir()})
	if err := cold.Open(ctx); err != nil {
		b.Fatal(err)
	}
	defer cold.Close()
	now := time.Now().UnixMilli()
	from := now - 7_200_000
	for i := 0; i < timers; i += 1000 {
		var cs []*engine.Change
		var s engine.Settlement
		for id := engine.TimerID(i + 1); len(cs) < 1000; id++ {
			t := &engine.Timer{ID: id, Version: 1, Generation: 1, CreatedAt: from, UpdatedAt: from}
			t.Definition = timer(id.String(), at(from+1+int64(id)%3_000_000))
			if id%2 == 0 {
				t.Schedule = every(time.Hour + time.Duration(id%1000)*time.Millisecond)
			}
			if err := plan.Resolve(t, nil, from); err != nil {
				b.Fatal(err)
			}
			cs = append(cs, &engine.Change{Timer: t, ID: id})
			due := t.LastDue
			if due == 0 {
				due = t.Anchor + t.Schedule.Every.Milliseconds()
			}
			k := engine.Key{Timer: id, Due: due}
			x := engine.Task{
				Key: k, App: t.App, Name: t.Name, Generation: 1, Status: engine.Succeeded, Ended: due + 3, Since: due,
				Attempts: []engine.Attempt{{N: 1, Started: due*1000 + 300, Took: time.Millisecond, Code: 200, Response: []byte("ok")}},
			}
			s.Tasks = append(s.Tasks, engine.Record{Key: k, Status: x.Status, Encoded: engine.AppendTask(nil, &x)})
		}
		for _, a := range cold.ApplyAll(ctx, cs) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
		if err := cold.Settle(ctx, &s); err != nil {
			b.Fatal(err)
		}
	}
	s := engine.Settlement{}
	for i := range engine.Shards {
		s.Marks = append(s.Marks, engine.Mark{Shard: i, W: from + 3_700_000})
	}
	if err := cold.Settle(ctx, &s); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	for b.Loop() {
		v, err := verify.Offline(ctx, cold, verify.Request{From: from, To: now}, now, 24*time.Hour, func(f *verify.Finding) error {
			b.Errorf("%+v", *f)
			return nil
		})
		if err != nil || v.Dues != timers || v.Records != timers {
			b.Fatal(v, err)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
	b.ReportMetric(timers*float64(b.N)/b.Elapsed().Seconds(), "timers/s")
}
