package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"xtimer/engine"
)

// longest bounds a statement of the slow pool: an index on 100 million timers takes minutes.
const longest = time.Hour

// session is what every connection says first. A lock is waited for less long than an answer,
// so that a wait ends in its own error. The server ends a session that is silent for 2 s within a
// transaction: its process was stopped, or is behind a cut network, and whoever evicts that node
// waits for its locks. MariaDB has a timeout for that. MySQL has none, and ends a session that
// is silent for 2 s anywhere; a connection that has ended is noticed before it is used.
var session = []string{
	"SET SESSION sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout=2, lock_wait_timeout=3, " +
		"wait_timeout=2/*M!100300 +13, idle_transaction_timeout=2*/, autocommit=1",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
}

// pools are the connections of a store.
type pools struct {
	db   *sql.DB
	asks *sql.DB // for Owns, Beat and Look, which are to wait behind nothing
	slow *sql.DB // for statements that may take long: the migrations', the partitions'
}

// connect builds the pools; it does not touch the network.
func connect(dsn string) (p pools, err error) {
	c, err := parseDSN(dsn)
	if err != nil {
		return p, err
	}
	if p.db, err = pool(c, 32); err != nil {
		return p, err
	}
	if p.asks, err = pool(c, 2); err != nil {
		return p, err
	}
	c.ReadTimeout = max(c.ReadTimeout, longest)
	p.slow, err = pool(c, 1)
	return p, err
}

// close disconnects.
func (p *pools) close() error { return errors.Join(p.db.Close(), p.asks.Close(), p.slow.Close()) }

// CheckDSN returns an error if Open would refuse a DSN whatever the server says.
func CheckDSN(dsn string) error {
	_, err := parseDSN(dsn)
	return err
}

// parseDSN reads the user's DSN. It sets over it what this package relies on, and
// refuses what could change the meaning of a statement or give a password away.
func parseDSN(dsn string) (*mysql.Config, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("cannot read the DSN of the database: %w", err)
	}
	if c.DBName == "" {
		return nil, fmt.Errorf("the DSN names no database: it ends in /name")
	}
	if _, _, err := net.SplitHostPort(c.Addr); c.Net != "unix" && (c.Net != "tcp" || err != nil) {
		return nil, fmt.Errorf("the DSN names no server: it is user:password@tcp(host:port)/name, or unix(path) in the place of tcp")
	}
	if err := refuse(c); err != nil {
		return nil, err
	}
	for p, d := range map[*time.Duration]time.Duration{
		&c.Timeout: 2 * time.Second, &c.ReadTimeout: 5 * time.Second, &c.WriteTimeout: 5 * time.Second,
	} {
		if *p == 0 {
			*p = d
		}
	}
	c.ClientFoundRows = true   // an update to the same value has found its row
	c.InterpolateParams = true // one round trip a statement, and no limit of placeholders
	c.MultiStatements = false
	c.AllowAllFiles = false // a server may not ask for files of this machine
	c.AllowOldPasswords = false
	c.CheckConnLiveness = true
	c.RejectReadOnly = false   // a read-only server is reported, see fault
	c.ColumnsWithAlias = false // columns are read by position
	c.MaxAllowedPacket = mysql.NewConfig().MaxAllowedPacket
	c.ParseTime, c.Loc = false, time.UTC // there are no SQL times
	c.Collation = ""
	if err := c.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")); err != nil {
		return nil, err
	}
	return c, nil
}

// refuse returns an error for a DSN that is dangerous. The driver sends a parameter
// that it does not know as SET name = value, both unquoted: any of them could set a
// character set in which our quoting of statements is not safe.
func refuse(c *mysql.Config) error {
	if len(c.Params) > 0 {
		return fmt.Errorf("the DSN sets the system variable %q: xtimer sets those that it needs in each session; set others in the server, or for its user",
			slices.Sorted(maps.Keys(c.Params))[0])
	}
	if verified := c.TLSConfig == "true" && !c.AllowFallbackToPlaintext; c.AllowCleartextPasswords && !verified && c.Net != "unix" {
		return errors.New("the DSN has allowCleartextPasswords without tls=true: whoever answers in the server's place would get the password")
	}
	return nil
}

func pool(c *mysql.Config, size int) (*sql.DB, error) {
	c = c.Clone()
	c.Logger = &mysql.NopLogger{} // the caller reports what fails
	inner, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("cannot use the DSN of the database: %w", err)
	}
	db := sql.OpenDB(connector{inner})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxLifetime(3 * time.Minute)
	db.SetConnMaxIdleTime(10 * time.Second)
	return db, nil
}

// connector makes connections that have said session.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range session {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, q, nil); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	return &writer{realConn: conn.(realConn)}, nil
}

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

// Weaknesses says what of the server's settings makes a commit less than it promises: each a
// sentence for the one who runs the server.
func (s *Store) Weaknesses(ctx context.Context) (found []string, err error) {
	set := map[string]string{}
	read := func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		set[strings.ToLower(name)] = value
		return err
	}
	err = s.read(ctx, "read the settings of the server", func(ctx context.Context) error {
		const variables = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit','sync_binlog','log_bin','wsrep_on')"
		if err := s.scan(ctx, variables, read); err != nil {
			return err
		}
		return s.scan(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'", read)
	})
	if err != nil {
		return nil, err
	}
	return weaknesses(set), nil
}

// weaknesses judges the settings of a server.
func weaknesses(set map[string]string) (found []string) {
	if v := set["innodb_flush_log_at_trx_commit"]; v != "1" && v != "" {
		found = append(found, fmt.Sprintf("innodb_flush_log_at_trx_commit of the database is %s: if its machine crashes, timers and results of the last second are lost although they were acknowledged. Set it to 1", v))
	}
	if v := set["sync_binlog"]; v != "1" && v != "" && isOn(set["log_bin"]) {
		found = append(found, fmt.Sprintf("sync_binlog of the database is %s: after a crash its replicas may lack timers and results that were acknowledged. Set it to 1", v))
	}
	if v := set["wsrep_cluster_size"]; isOn(set["wsrep_on"]) && v != "0" && v != "1" {
		found = append(found, fmt.Sprintf("the database is a Galera cluster of %s servers: let all of xtimer write to one and the same of them, since Galera may lose an update that another server makes at the same time", v))
	}
	return found
}

func isOn(v string) bool { return v == "1" || strings.EqualFold(v, "ON") }
