package mysql

import (
	"context"
	"database/sql/driver"

	"xtimer/engine"
)

// writer is a connection that is given up when it turns out that its server is
// read-only: the next one may lead to the server that has the writes by now. The
// driver's RejectReadOnly does that too, and hides why.
type writer struct {
	realConn
	lost bool
}

// realConn is what the driver's connections can do.
type realConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.NamedValueChecker
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.Validator
	driver.SessionResetter
}

// errReadOnly is engine.ErrUnavailable with its reason.
var errReadOnly = &engine.Fault{
	Kind: engine.ErrUnavailable.Kind, Code: engine.ErrUnavailable.Code,
	Detail: "MySQL is read-only: nothing is taken until it can be written to again",
}

func isReadOnly(err error) bool {
	n := number(err)
	return n == 1290 || n == 1792 || n == 1836
}

func (c *writer) heard(err error) error {
	c.lost = c.lost || isReadOnly(err)
	return err
}

// IsValid is asked before the connection goes back to its pool.
func (c *writer) IsValid() bool { return !c.lost && c.realConn.IsValid() }

func (c *writer) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.realConn.ExecContext(ctx, query, args)
	return r, c.heard(err)
}

// QueryContext is a way of writing too: rows are locked by a SELECT.
func (c *writer) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.realConn.QueryContext(ctx, query, args)
	return rows, c.heard(err)
}

func (c *writer) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.realConn.BeginTx(ctx, o)
	return &writerTx{tx, c}, err
}

type writerTx struct {
	driver.Tx
	c *writer
}

func (t *writerTx) Commit() error { return t.c.heard(t.Tx.Commit()) }

func (c *writer) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.realConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &writerStmt{s.(realStmt), c}, nil
}

// realStmt is what the driver's statements can do.
type realStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type writerStmt struct {
	realStmt
	c *writer
}

func (s *writerStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.realStmt.ExecContext(ctx, args)
	return r, s.c.heard(err)
}
