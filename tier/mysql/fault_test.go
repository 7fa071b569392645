package mysql

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"xtimer/engine"
)

// TestErrorsOfTheServer: what passes by itself, or when somebody mends the server,
// is the database's being away; a disk without room is full; and every other error,
// of the schema or of the user's rights, is a database that is broken.
func TestErrorsOfTheServer(t *testing.T) {
	for _, c := range []struct {
		number  uint16
		message string
		want    error
	}{
		{1040, "Too many connections", engine.ErrUnavailable},
		{1226, "User 'x' has exceeded the 'max_user_connections' resource (current value: 5)", engine.ErrUnavailable},
		{1129, "Host 'h' is blocked because of many connection errors", engine.ErrUnavailable},
		{1130, "Host 'h' is not allowed to connect to this server", engine.ErrUnavailable},
		{1158, "Got an error reading communication packets", engine.ErrUnavailable},
		{1159, "Got timeout reading communication packets", engine.ErrUnavailable},
		{1160, "Got an error writing communication packets", engine.ErrUnavailable},
		{1161, "Got timeout writing communication packets", engine.ErrUnavailable},
		{1047, "WSREP has not yet prepared node for application use", engine.ErrUnavailable},
		{1969, "Query execution was interrupted (max_statement_time exceeded)", engine.ErrUnavailable},
		{3024, "Query execution was interrupted, maximum statement execution time exceeded", engine.ErrUnavailable},
		{1030, "Got error 168 'Unknown (generic) error from engine' from storage engine", engine.ErrUnavailable},
		{1030, "Got error 128 \"Out of memory in engine\" from storage engine InnoDB", engine.ErrUnavailable},
		{1030, "Got error 28 - 'No space left on device' from storage engine", engine.ErrFull},
		{1030, "Got error 28 \"No space left on device\" from storage engine InnoDB", engine.ErrFull},
		{1021, "Disk full", engine.ErrFull},
		{1114, "The table 'tasks' is full", engine.ErrFull},
		{1290, "The MySQL server is running with the --read-only option", engine.ErrUnavailable},
		{1045, "Access denied for user 'x'@'h'", engine.ErrBroken},
		{1049, "Unknown database 'xtimer'", engine.ErrBroken},
		{1054, "Unknown column 'bound' in 'SELECT'", engine.ErrBroken},
		{1064, "You have an error in your SQL syntax", engine.ErrBroken},
		{1142, "INSERT command denied to user 'x'@'h' for table 'timers'", engine.ErrBroken},
		{1146, "Table 'xtimer.timers' doesn't exist", engine.ErrBroken},
		{1406, "Data too long for column 'name' at row 1", engine.ErrBroken},
	} {
		err := fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: c.number, Message: c.message})
		told := New(Config{}).fault(context.Background(), "write", err)
		var got []error
		for _, kind := range []error{engine.ErrUnavailable, engine.ErrFull, engine.ErrBroken} {
			if errors.Is(told, kind) {
				got = append(got, kind)
			}
		}
		if len(got) != 1 || got[0] != c.want || again(err) != (c.want == engine.ErrUnavailable) {
			t.Errorf("%d, %s: it is told as %v, tried again: %v", c.number, c.message, told, again(err))
		}
	}
}

// TestBrokenSchema: a table or a column that somebody took away, or a right, is told
// as that, by what writes, what reads and the housekeeping; and all goes on when it
// is back.
func TestBrokenSchema(t *testing.T) {
	s := opened(t)
	works(t, s)
	for broken, mended := range map[string]string{
		"RENAME TABLE timers TO gone":                                   "RENAME TABLE gone TO timers",
		"ALTER TABLE timers CHANGE definition gone MEDIUMBLOB NOT NULL": "ALTER TABLE timers CHANGE gone definition MEDIUMBLOB NOT NULL",
	} {
		if _, err := s.db.Exec(broken); err != nil {
			t.Fatal(err)
		}
		for what, call := range map[string]func() error{
			"a create": func() error { _, err := s.Apply(t.Context(), create(shot(1, "a"))); return err },
			"a change": func() error { _, err := s.Apply(t.Context(), &engine.Change{ID: 1, Was: 1}); return err },
			"a read":   func() error { _, err := s.Timer(t.Context(), 1); return err },
			"a list":   func() error { _, _, err := s.Timers(t.Context(), engine.TimerFilter{}, "", 10); return err },
			"what is due": func() error {
				return s.Due(t.Context(), engine.AllShards, benchNow, benchNow+1, func([]engine.Candidate) error { return nil })
			},
		} {
			if err := call(); !errors.Is(err, engine.ErrBroken) || errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("%s, after %s: %v", what, broken, err)
			}
		}
		if _, err := s.db.Exec(mended); err != nil {
			t.Fatal(err)
		}
		works(t, s)
	}
	if _, err := s.db.Exec("RENAME TABLE timers TO gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), benchNow, 0, 0); !errors.Is(err, engine.ErrBroken) {
		t.Errorf("the housekeeping: %v", err)
	}
}
