package mysql

import (
	"database/sql"
	"os"
	"regexp"
	"strings"
	"testing"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// TestGrants: the user that the guide tells to make can do all that is done, and
// is refused elsewhere.
func TestGrants(t *testing.T) {
	server := servertest.SharedMariaDB(t)
	guide, err := os.ReadFile("../../docs/mysql-redis.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sql\n(CREATE DATABASE.*?)```").FindSubmatch(guide)
	if block == nil {
		t.Fatal("the guide does not say how to make the user")
	}
	// A name of its own: the shared server has an xtimer already.
	server.Do(strings.NewReplacer("'xtimer'@", "'granted'@", "xtimer", "granted").Replace(string(block[1])))
	s := open(t, New(Config{DSN: "granted:secret@tcp(" + server.Addr() + ")/granted"}))

	const day = benchNow / dayMs
	mustApply(t, s, create(shot(1, "a")))
	mustApply(t, s, create(shot(2, "b")))
	if _, _, err := s.Take(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	var rs []engine.Record
	for d := int64(day); d < day+3; d++ {
		rs = append(rs, succeeded(engine.Key{Timer: 1, Due: d * dayMs}))
	}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Tasks: rs}); err != nil {
		t.Fatal(err)
	}
	for d := int64(day); d < day+3; d++ { // partitions are made, and dropped
		for more := true; more; {
			if more, err = s.Sweep(t.Context(), d*dayMs, (d-1)*dayMs, (d-1)*dayMs); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Task(t.Context(), rs[0].Key); err == nil {
		t.Error("the oldest day is still there")
	}
	partitions := 0
	if err := s.scan(t.Context(), "SELECT PARTITION_NAME FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME='tasks'", func(rows *sql.Rows) error {
		partitions++
		return nil
	}); err != nil || partitions < 4 {
		t.Errorf("%d partitions, %v", partitions, err)
	}
	server.DSN("other")
	if _, err := s.db.Exec("CREATE TABLE other.t (x INT)"); err == nil {
		t.Error("it may write elsewhere")
	}
}
