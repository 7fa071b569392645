package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/tier/mysql"
	"xtimer/tier/servertest"
	"xtimer/wal"
)

// BenchmarkDelete deletes a timer with many tasks that wait, some in memory and the
// others in the cold tier, and reports how long the answer took and how long it was
// until the last of them was stored as cancelled. XTIMER_WAITING sets how many; over
// MariaDB, XTIMER_DELAY_MS holds back each packet.
func BenchmarkDelete(b *testing.B) {
	for _, tier := range []string{"pebble", "mariadb"} {
		b.Run(tier, func(b *testing.B) {
			var cold engine.Cold = local.New(local.Config{Dir: b.TempDir()})
			var link *servertest.Proxy
			if tier == "mariadb" {
				server := servertest.MariaDB(b, "--innodb-buffer-pool-size=512M")
				link = servertest.NewProxy(b, server.Addr())
				cold = mysql.New(mysql.Config{DSN: strings.Replace(server.DSN("xtimer"), server.Addr(), link.Addr(), 1)})
			}
			deleteWaiting(b, cold, link, setting("XTIMER_WAITING", 150_000))
		})
	}
}

func deleteWaiting(b *testing.B, cold engine.Cold, link *servertest.Proxy, waiting int) {
	storeWaiting(b, cold, waiting)
	m := &mute{}
	s := scheduler.New(scheduler.Config{
		Cold: cold, Warm: memory.NewWarm(), Journal: wal.New(wal.Config{Dir: b.TempDir()}), Caller: m, MaxWaiting: waiting / 2,
		Log: slog.New(slog.DiscardHandler), Drain: time.Millisecond,
	})
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for s.Ready() != nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Second)
	if link != nil {
		link.Delay(time.Duration(setting("XTIMER_DELAY_MS", 0)) * time.Millisecond)
	}
	began := time.Now()
	if _, err := s.Delete(b.Context(), waitingID, 0); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/answer")
	m.deleted.Store(true)
	for flying := int(m.flying.Load()); ; time.Sleep(100 * time.Millisecond) {
		rows, err := cold.OwedPage(b.Context(), waitingID, -1, flying+1)
		if err != nil {
			b.Fatal(err)
		}
		if len(rows) <= flying {
			break
		}
		if time.Since(began) > 10*time.Minute {
			b.Fatal("rows are left")
		}
	}
	b.ReportMetric(time.Since(began).Seconds(), "s/all")
	b.ReportMetric(0, "ns/op")
	if n := m.after.Load(); n > 0 {
		b.Errorf("%d calls began after the answer", n)
	}
	stop()
	<-ended
}

const waitingID = engine.TimerID(1 << 40)

// storeWaiting stores the timer, and a row for each of its dues that waits.
func storeWaiting(b *testing.B, cold engine.Cold, waiting int) {
	b.Helper()
	if err := cold.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := cold.Close(); err != nil {
			b.Fatal(err)
		}
	}()
	now := time.Now().UnixMilli()
	first := now - int64(waiting)*10 - 1000
	t := &engine.Timer{Definition: engine.NewDefinition(), ID: waitingID, Version: 1, Generation: 1, ValidFrom: first, CreatedAt: first, UpdatedAt: first}
	t.App, t.Name, t.Schedule.Every = "app", "waiting", 10*time.Millisecond
	t.Misfire = engine.Misfire{Policy: engine.MisfireAll, Window: 24 * time.Hour}
	t.Callback.URL, t.Callback.Timeout = "http://127.0.0.1:1/", time.Minute
	if a, err := cold.Apply(b.Context(), &engine.Change{Timer: t, ID: t.ID, At: first}); err != nil || a.Err != nil {
		b.Fatal(err, a.Err)
	}
	shards, _, err := cold.Take(b.Context(), "n")
	if err != nil {
		b.Fatal(err)
	}
	i := t.ID.Shard()
	s := &engine.Settlement{Owner: "n", Marks: []engine.Mark{{Shard: i, Fence: shards[i].Fence, W: now - 1000}}}
	for due := first + 10; due <= now-1000; due += 10 {
		s.Owe = append(s.Owe, engine.Owed{Key: engine.Key{Timer: t.ID, Due: due}, Generation: 1, NotBefore: due, Lane: t.Lane()})
		if len(s.Owe) == 10_000 || due+10 > now-1000 {
			if err := cold.Settle(b.Context(), s); err != nil {
				b.Fatal(fmt.Errorf("cannot store rows: %w", err))
			}
			s.Owe = nil
		}
	}
}

// mute takes calls and does not answer.
type mute struct {
	deleted       atomic.Bool
	flying, after atomic.Int64
}

func (m *mute) Call(c *engine.Call) engine.Outcome {
	if !c.Send(func() bool {
		m.flying.Add(1)
		if m.deleted.Load() {
			m.after.Add(1)
		}
		return true
	}) {
		return engine.Outcome{Class: engine.ClassNotSent}
	}
	time.Sleep(10 * time.Minute)
	return engine.Outcome{Class: engine.ClassUnknown}
}
