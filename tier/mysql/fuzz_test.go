package mysql

import (
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"xtimer/engine"
)

// FuzzCursor: no cursor is taken but one that was given, and none of another path.
func FuzzCursor(f *testing.F) {
	c := cursor{text: "a", num: -1, id: 7354}
	f.Add(c.encode("timers"), "timers", c.text, c.num, uint64(c.id))
	f.Add("", "", "\x00", int64(0), uint64(1<<63))
	f.Fuzz(func(t *testing.T, s, scope, text string, num int64, id uint64) {
		s = strings.NewReplacer("\r", "", "\n", "").Replace(s) // which base64 passes over
		if c, err := openCursor(s, scope); err == nil && c.encode(scope) != s {
			t.Fatalf("%q is taken for %+v", s, c)
		}
		c := cursor{text: text, num: num, id: engine.TimerID(id)}
		if got, err := openCursor(c.encode(scope), scope); err != nil || got != c {
			t.Fatalf("%+v comes back as %+v, %v", c, got, err)
		}
		if _, err := openCursor(c.encode(scope), scope+"x"); err == nil {
			t.Fatal("it is taken by another path")
		}
	})
}

// FuzzDSN: a DSN is refused, or read as one that can be dialled and has what this
// package relies on; its password is in no error.
func FuzzDSN(f *testing.F) {
	for _, rest := range []string{
		"tcp(127.0.0.1:3306)/xtimer", "unix(/run/mysqld.sock)/a%2fb?multiStatements=true&timeout=1s&collation=utf8mb4_bin",
		"tcp([::1])/x?clientFoundRows=false&interpolateParams=false&loc=Local&parseTime=true", "127.0.0.1:3306/x", "tpc(h:1)/x", "tcp(h)/x?tls=none",
		"tcp(h)/x?time_zone=%27%2B00%3A00%27&sql_mode=%zz", "/x", "tcp(h:1)",
	} {
		f.Add("secret", rest)
		f.Add("sec/r:e@t", rest)
	}
	f.Fuzz(func(t *testing.T, password, rest string) {
		dsn := "user:" + password + "@" + rest
		c, err := parseDSN(dsn)
		if err != nil {
			if len(password) >= 6 && strings.Contains(rest, "/") && !strings.Contains(rest, password) && strings.Contains(err.Error(), password) {
				t.Fatalf("the password is told: %v", err)
			}
			return
		}
		if c.DBName == "" || !c.ClientFoundRows || !c.InterpolateParams || c.MultiStatements || c.AllowAllFiles || len(c.Params) > 0 || c.ParseTime || c.Timeout == 0 || c.ReadTimeout == 0 || c.WriteTimeout == 0 {
			t.Fatalf("%q: %+v", dsn, c)
		}
		again, err := mysql.ParseDSN(c.FormatDSN())
		if err != nil || again.Addr != c.Addr || again.User != c.User || again.Passwd != c.Passwd || again.DBName != c.DBName {
			t.Fatalf("%q: %+v is written as %q, %v", dsn, c, c.FormatDSN(), err)
		}
		db, err := pool(c, 1)
		if err != nil {
			t.Fatalf("%q: %v", dsn, err)
		}
		db.Close()
	})
}
