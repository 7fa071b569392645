package mysql

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// TestMigrateAtOnce: of nodes that start at once one makes the schema.
func TestMigrateAtOnce(t *testing.T) {
	dsn := servertest.SharedMariaDB(t).DSN("")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := New(Config{DSN: dsn})
			if err := s.Open(t.Context()); err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if shards, err := s.Shards(t.Context()); err != nil || len(shards) != engine.Shards {
				t.Error(len(shards), err)
			}
		})
	}
	wg.Wait()
}

// TestMigrateForward: a later version is applied once, one that was cut short
// again; and a program that does not know it refuses the database.
func TestMigrateForward(t *testing.T) {
	s := fresh(t)
	var err error
	if s.pools, err = connect(s.cfg.DSN); err != nil {
		t.Fatal(err)
	}
	defer s.release()
	next := len(migrations()) + 1
	broken := append(migrations(), migration{next, []string{"CREATE TABLE IF NOT EXISTS two (a INT PRIMARY KEY)", "NONSENSE"}})
	if err := s.migrateTo(t.Context(), broken); err == nil {
		t.Fatal("a migration that failed was taken for done")
	}
	whole := append(migrations(), migration{next, []string{"CREATE TABLE IF NOT EXISTS two (a INT PRIMARY KEY)", "INSERT INTO two VALUES (1)"}})
	for range 2 {
		if err := s.migrateTo(t.Context(), whole); err != nil {
			t.Fatal(err)
		}
	}
	err = New(Config{DSN: s.cfg.DSN}).Open(t.Context())
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint("schema version ", next)) || !strings.Contains(err.Error(), "newer xtimer") {
		t.Fatalf("the schema of a newer program: %v", err)
	}
}

// TestMigrateCutShort: a migration that ended after any of its statements is made by the next
// start.
func TestMigrateCutShort(t *testing.T) {
	s := unhurried(t)
	var err error
	if s.pools, err = connect(s.cfg.DSN); err != nil {
		t.Fatal(err)
	}
	for i, m := range migrations() {
		for n := range m.statements {
			short := migrations()[:i+1]
			short[i].statements = append(short[i].statements[:n+1:n+1], "NONSENSE")
			if err := s.migrateTo(t.Context(), short); number(err) != 1064 {
				t.Fatalf("schema version %d, %d statements: %v", m.version, n+1, err)
			}
		}
		if err := s.migrateTo(t.Context(), migrations()[:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.release(); err != nil {
		t.Fatal(err)
	}
	open(t, s)
	mustTake(t, s)
	mustApply(t, s, create(shot(1, "one")))
	if err := s.Settle(t.Context(), marking(benchNow)); err != nil {
		t.Fatal(err)
	}
}

// TestDSN: what the user may say in the DSN, and what the server is set to,
// changes nothing that is stored or read.
func TestDSN(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t, "--default-time-zone=-05:00", "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
		"--character-set-server=gbk", "--init-connect=SET NAMES gbk", "--transaction-isolation=SERIALIZABLE", "--max-allowed-packet=4M")
	s := open(t, New(Config{DSN: server.DSN("x") + "?parseTime=true&loc=America%2FNew_York&clientFoundRows=false&interpolateParams=false" +
		"&charset=gbk&collation=gbk_chinese_ci&multiStatements=true&maxAllowedPacket=1024&columnsWithAlias=true&rejectReadOnly=true" +
		"&allowAllFiles=true&allowOldPasswords=true"}))
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	want := shot(1, "näme '\\\x00\x1a\" "+string(all[:200]))
	want.Callback.Body = slices.Concat(all, []byte(`\'; DROP TABLE timers; -- `), bytes.Repeat(all, 4000)) // 1 MB
	want.Labels = []engine.Label{{Key: "k'\\", Value: "v\"\x00" + string(all[:100])}}
	// 01:30 EST on the day the clocks go back: the second of two.
	want.At = 1_793_514_600_000
	want.LastDue, want.Schedule.At = want.At, want.At
	mustApply(t, s, create(want))
	for _, read := range []func() (*engine.Timer, error){
		func() (*engine.Timer, error) { return s.Timer(t.Context(), 1) },
		func() (*engine.Timer, error) { return s.TimerByName(t.Context(), want.App, want.Name) },
		func() (*engine.Timer, error) {
			f := engine.TimerFilter{Labels: []engine.LabelMatch{{Key: want.Labels[0].Key, Value: want.Labels[0].Value}}}
			ts, _, err := s.Timers(t.Context(), f, "", 2)
			return append(ts, nil)[0], err
		},
	} {
		got, err := read()
		if err != nil || got == nil || !bytes.Equal(engine.AppendTimer(nil, got), engine.AppendTimer(nil, want)) {
			t.Fatalf("it is not what was written: %v", err)
		}
	}
	var dues []int64
	if err := s.Due(t.Context(), engine.AllShards, want.At-1, want.At, func(cs []engine.Candidate) error {
		for _, c := range cs {
			dues = append(dues, c.Due)
			if d, err := engine.DecodeTimer(c.Definition); err != nil || d.At != want.At {
				t.Errorf("%v, %v", d, err)
			}
		}
		return nil
	}); err != nil || !slices.Equal(dues, []int64{want.At}) {
		t.Fatalf("%v, %v", dues, err)
	}
	// Cases and spaces are of a name; texts compare as bytes.
	mustApply(t, s, create(shot(2, "Name")))
	mustApply(t, s, create(shot(3, "name")))
	mustApply(t, s, create(shot(4, "name ")))
	for id, n := range map[engine.TimerID]string{2: "Name", 3: "name", 4: "name "} {
		if got, err := s.TimerByName(t.Context(), "billing", n); err != nil || got.ID != id {
			t.Fatalf("%q: %v, %v", n, got, err)
		}
	}
	// MySQL has no tx_isolation, MariaDB 10.6 nothing else.
	var name, level, mode string
	if err := s.db.QueryRow("SHOW VARIABLES WHERE Variable_name IN ('tx_isolation','transaction_isolation')").Scan(&name, &level); err != nil || level != "READ-COMMITTED" {
		t.Fatalf("%s, %v", level, err)
	}
	var client, connection string
	if err := s.db.QueryRow("SELECT @@character_set_client,@@collation_connection").Scan(&client, &connection); err != nil || client != "utf8mb4" || connection != "utf8mb4_bin" {
		t.Fatalf("%s, %s, %v", client, connection, err)
	}
	if err := s.db.QueryRow("SELECT @@sql_mode").Scan(&mode); err != nil || !strings.HasPrefix(mode, "STRICT_ALL_TABLES") {
		t.Fatalf("%s, %v", mode, err)
	}
	for _, dsn := range []string{"", "nonsense", "a@tcp(127.0.0.1:1)/"} {
		if err := New(Config{DSN: dsn}).Open(t.Context()); err == nil {
			t.Fatalf("%q was taken", dsn)
		}
	}
}

// TestDangerousDSN: no DSN reads files of this machine for the server, changes how
// statements are quoted, or sends the password to whoever answers.
func TestDangerousDSN(t *testing.T) {
	const dsn = "user:secret@tcp(h:1)/x?"
	for _, c := range []struct{ dsn, wrong string }{
		{dsn + "character_set_client=gbk", `"character_set_client"`},
		{dsn + "time_zone=%27%2B00:00%27,character_set_client=gbk", `"time_zone"`},
		{dsn + "sql_mode=%27NO_BACKSLASH_ESCAPES%27", `"sql_mode"`},
		{dsn + "NAMES%20gbk%23=1", `"NAMES%20gbk%23"`},
		{dsn + "allowCleartextPasswords=true", "allowCleartextPasswords"},
		{dsn + "allowCleartextPasswords=true&tls=skip-verify", "allowCleartextPasswords"},
		{dsn + "allowCleartextPasswords=true&tls=preferred", "allowCleartextPasswords"},
		{dsn + "allowCleartextPasswords=true&tls=true&allowFallbackToPlaintext=true", "allowCleartextPasswords"},
		{dsn + "allowCleartextPasswords=true&tls=true", ""},
		{"user:secret@unix(/s)/x?allowCleartextPasswords=true", ""},
		{dsn + "allowAllFiles=true&multiStatements=true&charset=gbk", ""},
	} {
		switch parsed, err := parseDSN(c.dsn); {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: %v", c.dsn, err)
		case c.wrong == "" && err != nil:
			t.Errorf("%s is refused: %v", c.dsn, err)
		case c.wrong == "" && (parsed.AllowAllFiles || parsed.MultiStatements):
			t.Errorf("%s: %+v", c.dsn, parsed)
		}
	}
}

// TestManyRows: one call may hold more than any statement.
func TestManyRows(t *testing.T) {
	t.Parallel()
	s := open(t, unhurried(t))
	const n = 14_000 // 70,000 values
	st := &engine.Settlement{Owner: "n"}
	var cs []*engine.Change
	var ids []engine.TimerID
	for i := range n {
		k := engine.Key{Timer: engine.TimerID(i + 1), Due: benchNow}
		st.Tasks = append(st.Tasks, succeeded(k))
		ids = append(ids, k.Timer)
		if i < 3000 {
			x := shot(k.Timer, fmt.Sprint("n", i))
			if i%1000 == 0 {
				x.Callback.Body = bytes.Repeat([]byte("x"), 900<<10) // each nearly a statement by itself
			}
			cs = append(cs, create(x))
			st.Owe = append(st.Owe, engine.Owed{Key: k, NotBefore: benchNow})
		}
	}
	for i, a := range s.ApplyAll(t.Context(), cs) {
		if a.Err != nil {
			t.Fatal(i, a.Err)
		}
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	st.Pay, st.Owe, st.Replayed = nil, nil, true
	for _, k := range st.Tasks[:3000] {
		st.Pay = append(st.Pay, k.Key)
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	loaded, err := s.Load(t.Context(), ids)
	if err != nil || len(loaded) != n || loaded[2999] == nil || loaded[3000] != nil {
		t.Fatal(len(loaded), err)
	}
	if rows, err := s.OwedPage(t.Context(), 3000, -1, 1<<20); err != nil || len(rows) != 0 {
		t.Fatal(rows, err)
	}
	if _, err := s.Task(t.Context(), engine.Key{Timer: n, Due: benchNow}); err != nil {
		t.Fatal(err)
	}
}

// TestSample: with sampling, successes at once are thinned out, the same ones
// at a repeat; nothing else is.
func TestSample(t *testing.T) {
	s := opened(t)
	s.cfg.SampleSuccesses = 10
	st := &engine.Settlement{Owner: "n"}
	for i := range 1000 {
		r := succeeded(engine.Key{Timer: engine.TimerID(i + 1), Due: benchNow + int64(i)})
		switch i % 100 {
		case 0:
			r.Status = engine.Dead
		case 50: // the second call went well, before the watermark passed it
			r = succeeded(r.Key, engine.Attempt{N: 1, Code: 503}, engine.Attempt{N: 2, Code: 200})
		case 51: // the first after a redrive
			r = succeeded(r.Key, engine.Attempt{N: 4, Code: 200})
		}
		st.Tasks = append(st.Tasks, r)
	}
	st.Tasks[7].Kept = true
	count := func() (n int) {
		t.Helper()
		if err := s.db.QueryRow("SELECT COUNT(*) FROM tasks").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	first := count()
	if first < 50 || first > 300 {
		t.Fatalf("%d of 1,000 are kept", first)
	}
	for i := 0; i < 1000; i += 100 {
		for _, j := range []int{i, i + 50, i + 51} {
			if _, err := s.Task(t.Context(), st.Tasks[j].Key); err != nil {
				t.Fatalf("record %d, a failure or a success after one: %v", j, err)
			}
		}
	}
	if _, err := s.Task(t.Context(), st.Tasks[7].Key); err != nil {
		t.Fatalf("a success that was owed: %v", err)
	}
	// A later server, or verify, may not know that history was sampled.
	leftOut, err := s.LeftOut(t.Context(), 0, engine.MaxDue)
	if want := []int64{benchNow - benchNow%minute}; err != nil || !slices.Equal(leftOut, want) {
		t.Fatalf("history is not whole in %v, %v, want %v", leftOut, err, want)
	}
	if err := s.Settle(t.Context(), st); err != nil || count() != first {
		t.Fatalf("%v, %d records after a repeat, %d before", err, count(), first)
	}
}

// TestOriginal reads a table of the original XTimer.
func TestOriginal(t *testing.T) {
	s := opened(t)
	for _, q := range []string{
		`CREATE TABLE timer (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, app VARCHAR(128), name VARCHAR(256), status TINYINT, cron VARCHAR(256),
			notify_http_param VARCHAR(4096), deleted_at DATETIME NULL, created_at DATETIME NULL) DEFAULT CHARSET=utf8mb4`,
		`INSERT INTO timer VALUES (1,'a','ä',2,'0 * * * * * *','{"url":"http://h/"}',NULL,NOW()), (2,'a','b',1,'',NULL,'2024-01-02 03:04:05',NULL)`,
		`INSERT INTO timer (app,name,status,cron) VALUES ('x','n',1,'c')` + strings.Repeat(",('x','n',1,'c')", 1499),
	} {
		if _, err := s.db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	var rows []OriginalRow
	if err := ReadOriginal(t.Context(), s.cfg.DSN, func(r OriginalRow) error { rows = append(rows, r); return nil }); err != nil {
		t.Fatal(err)
	}
	want := []OriginalRow{
		{ID: 1, App: "a", Name: "ä", Status: 2, Cron: "0 * * * * * *", NotifyHTTPParam: `{"url":"http://h/"}`},
		{ID: 2, App: "a", Name: "b", Status: 1, Deleted: true},
	}
	if len(rows) != 1502 || !slices.Equal(rows[:2], want) {
		t.Fatalf("%d rows, %+v", len(rows), rows[:min(len(rows), 2)])
	}
	stop := errors.New("stop")
	if err := ReadOriginal(t.Context(), s.cfg.DSN, func(OriginalRow) error { return stop }); !errors.Is(err, stop) {
		t.Fatal(err)
	}
}
