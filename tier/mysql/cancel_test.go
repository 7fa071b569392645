package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// TestCancelledMeanwhile: who gives up a statement does not end it, for the server
// goes on with it. Nothing of a transaction given up may stay, and the same settle
// made again is made once.
func TestCancelledMeanwhile(t *testing.T) {
	t.Parallel()
	s := opened(t)
	server := servertest.SharedMariaDB(t)
	k := engine.Key{Timer: 1, Due: benchNow}
	o := engine.Owed{Key: k, NotBefore: benchNow}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: []engine.Owed{o}}); err != nil {
		t.Fatal(err)
	}
	other := holder(t, s)
	if _, err := other.Exec("SELECT 1 FROM owed FOR UPDATE"); err != nil {
		t.Fatal(err)
	}

	// It moves the watermark, and then waits for the row of owed.
	st := &engine.Settlement{Owner: "n", Tasks: []engine.Record{succeeded(k)}, Pay: []engine.Key{k}, Marks: []engine.Mark{{Shard: 3, W: benchNow}}}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- s.Settle(ctx, st) }()
	database := s.cfg.DSN[strings.LastIndexByte(s.cfg.DSN, '/')+1:]
	running := func() bool {
		q := fmt.Sprintf("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DELETE t FROM owed%%' AND DB='%s'", database)
		return strings.TrimSpace(server.Do(q)) != "0"
	}
	patient(t, "the statement runs", running)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("given up, and: %v", err)
	}
	if !running() {
		t.Log("the server has noticed at once: this run says little")
	}
	if err := other.Rollback(); err != nil { // the statement goes on
		t.Fatal(err)
	}
	patient(t, "the session is over", func() bool { return !running() })
	shards, err := s.Shards(t.Context())
	if err != nil || shards[3].Watermark != 0 {
		t.Errorf("the watermark of what was given up stands at %d, %v", shards[3].Watermark, err)
	}
	if rows, err := s.OwedPage(t.Context(), 1, -1, 1<<20); err != nil || len(rows) != 1 {
		t.Errorf("%d rows are owed after what was given up, %v", len(rows), err)
	}
	for range 2 {
		if err := s.Settle(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if shards, err = s.Shards(t.Context()); err != nil || shards[3].Watermark != benchNow {
		t.Errorf("the watermark stands at %d, %v", shards[3].Watermark, err)
	}
	if rows, err := s.OwedPage(t.Context(), 1, -1, 1<<20); err != nil || len(rows) != 0 {
		t.Errorf("%d rows are owed, %v", len(rows), err)
	}
}

// TestPool: however many call at once there are 33 connections at most; the server
// ends one that is silent for long, and one that it ended is noticed before it is used.
func TestPool(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t)
	s := open(t, New(Config{DSN: server.DSN("x")}))
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			if _, err := s.OwedPage(t.Context(), engine.TimerID(i), -1, 1<<20); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.db.Stats().MaxOpenConnections; n != 32 {
		t.Errorf("%d connections may be open", n)
	}
	most := server.Do("SHOW GLOBAL STATUS LIKE 'Max_used_connections'") // its name, and the number
	var n int
	if _, err := fmt.Sscanf(most, "Max_used_connections %d", &n); err != nil || n > 35 { // ours, and those that look
		t.Errorf("%s connections were open", most)
	}
	variable := "@@idle_transaction_timeout"
	if servertest.IsMySQL() {
		variable = "@@wait_timeout"
	}
	var silent int
	if err := s.db.QueryRow("SELECT " + variable).Scan(&silent); err != nil || silent != 2 {
		t.Errorf("the server waits %d s for a session that is silent, %v", silent, err)
	}
	root, err := sql.Open("mysql", "root@tcp("+server.Addr()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for range 20 {
		for id := range strings.FieldsSeq(server.Do("SELECT ID FROM information_schema.PROCESSLIST WHERE USER='xtimer'")) {
			const hasEnded = 1094 // MySQL lists a session for some time after its end
			if _, err := root.Exec("KILL " + id); err != nil && number(err) != hasEnded {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if _, err := s.OwedPage(t.Context(), 1, -1, 1<<20); err != nil {
			t.Fatalf("after the server ended all connections: %v, in %v", err, time.Since(began))
		}
	}
}
