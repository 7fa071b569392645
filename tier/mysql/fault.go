package mysql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"xtimer/engine"
)

// Numbers of the server's errors that mean something to us.
const (
	errColumnStands = 1060
	errKeyStands    = 1061
	errDuplicate    = 1062
	errLockWait     = 1205
	errDeadlock     = 1213
)

// passing are errors of the moment: the same transaction may do better. Each
// ends its transaction here, also 1205, after which the server would keep it.
var passing = []uint16{
	errLockWait, errDeadlock,
	1040, 1203, 1226, // too many connections: of all, of a user, of an account
	1129, 1130, // the server does not know this host any more: it blocked it, or its grants are being made anew
	1158, 1159, 1160, 1161, // the network between a proxy and the server
	1047,       // Galera: the node is no part of the cluster
	1030,       // the storage engine failed: a disk that is full or broken
	1969, 3024, // the statement took longer than the server's administrator lets it
	1053, 1927, 1317, // the server shuts down; the connection, the query was killed
	3032, 4031, // MySQL in offline mode; MySQL ended a session that was silent for wait_timeout
	3101,       // MySQL's Group Replication rolled it back
	1615,       // the table of a prepared statement is being changed
	1180, 1105, // a commit failed; TiDB's unnamed errors
	8002, 8005, 8022, 8028, 9001, 9002, 9003, 9004, 9005, 9007, // TiDB: write conflicts, busy stores, a changed schema
}

// full are errors of a disk that has no room.
var full = []uint16{1021, 1114}

// isFull reports whether the disk of the server is full, also when the storage
// engine says so with the error number of the operating system.
func isFull(err error) bool {
	const engineFailed, noSpace = 1030, "error 28 "
	var e *mysql.MySQLError
	return errors.As(err, &e) && (slices.Contains(full, e.Number) || e.Number == engineFailed && strings.Contains(e.Message, noSpace))
}

func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// ours reports whether an error is a decision of this tier, not an accident.
func ours(err error) bool {
	var f *engine.Fault
	return errors.Is(err, engine.ErrFenced) || errors.As(err, &f)
}

// away reports whether the database, or the way to it, failed: the server did not
// answer, or answered with an error that passes.
func away(err error) bool {
	var own *rowError
	if errors.As(err, &own) {
		return false
	}
	n := number(err)
	return n == 0 || slices.Contains(passing, n) && !isFull(err) || isReadOnly(err)
}

// again reports whether a transaction that failed may be tried again.
func again(err error) bool {
	return err != nil && !ours(err) && away(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// rowError is an error that is not the database's: of a row, or a caller.
type rowError struct{ error }

func (e *rowError) Unwrap() error { return e.error }

// errNotOpen is engine.ErrUnavailable of a store that has not been opened yet.
var errNotOpen = &engine.Fault{
	Kind: engine.FaultUnavailable, Code: "not_ready",
	Detail: "the server is starting, or stopping: it has no connection to MySQL",
}

// errAway is engine.ErrUnavailable by the name of what is away.
var errAway = &engine.Fault{
	Kind: engine.ErrUnavailable.Kind, Code: engine.ErrUnavailable.Code,
	Detail: "MySQL is unavailable, or does not respond",
}

// errBroken is engine.ErrBroken with the name of what is broken. Every error of the
// server that does not pass by itself is one: a table or a column is missing or has
// another type, or the user has lost a right.
var errBroken = &engine.Fault{
	Kind: engine.ErrBroken.Kind, Code: engine.ErrBroken.Code,
	Detail: "MySQL refuses what xtimer needs: the tables or the user's rights are not as xtimer made them; the server's log has MySQL's words",
}

// fault turns an error into what a caller of the tier understands.
func (s *Store) fault(ctx context.Context, what string, err error) error {
	var own *rowError
	switch {
	case err == nil, ours(err):
		return err
	case errors.As(err, &own):
		return own.error
	case ctx.Err() != nil:
		return fmt.Errorf("cannot %s: %w", what, context.Cause(ctx))
	case isFull(err):
		return fmt.Errorf("cannot %s: %w: %w", what, engine.ErrFull, err)
	case isReadOnly(err):
		return fmt.Errorf("cannot %s: %w: %w: %w", what, errReadOnly, engine.ErrUnavailable, err)
	case away(err):
		return fmt.Errorf("cannot %s: %w: %w: %w", what, errAway, engine.ErrUnavailable, err)
	case number(err) != 0:
		return fmt.Errorf("cannot %s: %w: %w: %w", what, errBroken, engine.ErrBroken, err)
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}

// tries is how often a transaction is begun before its error is returned.
const tries = 5

// pause waits before a try that is not the first, longer each time, and not as
// long as others that lost the same race.
func pause(ctx context.Context, try int) error {
	if try == 0 {
		return ctx.Err()
	}
	base := 5 * time.Millisecond << try
	wait := time.NewTimer(base/2 + rand.N(base))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
