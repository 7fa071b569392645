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
// is the database's being away; a statement or a schema that is wrong is not, nor
// is a disk without room.
func TestErrorsOfTheServer(t *testing.T) {
	other := errors.New("neither")
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
		{1045, "Access denied for user 'x'@'h'", other},
		{1064, "You have an error in your SQL syntax", other},
		{1146, "Table 'xtimer.timers' doesn't exist", other},
	} {
		err := fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: c.number, Message: c.message})
		told, got := New(Config{}).fault(context.Background(), "write", err), other
		for _, kind := range []error{engine.ErrUnavailable, engine.ErrFull} {
			if errors.Is(told, kind) {
				got = kind
			}
		}
		if got != c.want || again(err) != (c.want == engine.ErrUnavailable) {
			t.Errorf("%d, %s: it is told as %v, tried again: %v", c.number, c.message, told, again(err))
		}
	}
}
