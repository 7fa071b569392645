package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/tier/local"
)

// filled is what fillStore has put into a store: timers of 500 apps, each every six
// hours, with a task for each of the last ten dues.
type filled struct {
	timers int
	now    int64 // Unix ms
}

const filledEvery = 6 * time.Hour

// due is when the i-th timer was due so many times back; 0: when it is next, from
// ten minutes to six hours from now.
func (f *filled) due(i, back int) int64 {
	const lead = 600_000
	return f.now + lead + int64(i)*(filledEvery.Milliseconds()-lead)/int64(f.timers) - int64(back)*filledEvery.Milliseconds()
}

func (f *filled) id(i int) engine.TimerID { return engine.TimerID(i + 1) }
func (f *filled) app(i int) string        { return fmt.Sprintf("app-%d", i%500) }
func (f *filled) name(i int) string       { return fmt.Sprintf("order-%d-expire", i) }

// task is one of the i-th timer's. Of 400 timers one always fails and one is dead.
func (f *filled) task(i, back int) *engine.Task {
	at := f.due(i, back)
	t := &engine.Task{
		Key: engine.Key{Timer: f.id(i), Due: at}, App: f.app(i), Name: f.name(i), Generation: 1, Status: engine.Succeeded,
		Lateness: 300 * time.Microsecond, Ended: at + 2, Since: at,
		Attempts: []engine.Attempt{{N: 1, Started: at*1000 + 300, Took: time.Millisecond, Code: 200, Response: []byte("ok")}},
	}
	switch i % 400 {
	case 0:
		t.Status, t.Attempts[0].Code, t.Attempts[0].ErrorClass = engine.Failed, 404, "status"
	case 1:
		t.Status, t.Attempts[0].Code, t.Attempts[0].ErrorClass = engine.Dead, 503, "status"
	}
	return t
}

// fillStore writes them into the cold store in dir, all settled.
func fillStore(b *testing.B, dir, url string, timers int) *filled {
	ctx := context.Background()
	f := &filled{timers: timers, now: time.Now().UnixMilli()}
	cold := local.New(local.Config{Dir: dir})
	if err := cold.Open(ctx); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < timers; {
		var cs []*engine.Change
		for ; len(cs) < 1000 && i < timers; i++ {
			t := &engine.Timer{Definition: engine.NewDefinition(), ID: f.id(i), Version: 1, Generation: 1}
			t.App, t.Name, t.Schedule.Every, t.Callback.URL = f.app(i), f.name(i), filledEvery, url
			t.Labels = []engine.Label{{Key: "team", Value: fmt.Sprint(i % 20)}}
			t.CreatedAt = f.due(i, 11)
			t.UpdatedAt = t.CreatedAt
			if err := plan.Resolve(t, nil, t.CreatedAt); err != nil {
				b.Fatal(err)
			}
			cs = append(cs, &engine.Change{Timer: t, ID: t.ID, At: t.CreatedAt})
		}
		for _, a := range cold.ApplyAll(ctx, cs) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
	}
	for back := 10; back > 0; back-- {
		for i := 0; i < timers; {
			var s engine.Settlement
			for ; len(s.Tasks) < 10_000 && i < timers; i++ {
				t := f.task(i, back)
				s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, t)})
			}
			if err := cold.Settle(ctx, &s); err != nil {
				b.Fatal(err)
			}
		}
	}
	shards, err := cold.Shards(ctx)
	if err != nil {
		b.Fatal(err)
	}
	var s engine.Settlement
	for i, sh := range shards {
		s.Marks = append(s.Marks, engine.Mark{Shard: i, Fence: sh.Fence, W: f.now})
	}
	if err := cold.Settle(ctx, &s); err != nil {
		b.Fatal(err)
	}
	if err := cold.Close(); err != nil {
		b.Fatal(err)
	}
	return f
}
