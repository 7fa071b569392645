package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xtimer/cmd/xtimer/settings"
)

// MarkedWithin is how soon a server that runs moves a watermark, with time to
// spare: the engine writes each every 10 s at least. Tests shorten it.
var MarkedWithin = 15 * time.Second

// Unused refuses a database that a server uses. A data directory has its lock;
// in MySQL a server is seen by its watermarks: one that moved a moment ago is
// watched for as long as a server would need to move it again.
func Unused(ctx context.Context, s *settings.Settings) (err error) {
	if s.MySQLDSN == "" {
		return nil
	}
	cold := Cold(s)
	if err := cold.Open(ctx); err != nil {
		return fmt.Errorf("cannot open the store: %w", err)
	}
	defer func() { err = errors.Join(err, cold.Close()) }()
	sum := func() (sum, newest int64, err error) {
		shards, err := cold.Shards(ctx)
		for _, sh := range shards {
			sum, newest = sum+sh.Watermark, max(newest, sh.Watermark)
		}
		return sum, newest, err
	}
	was, newest, err := sum()
	if err != nil {
		return fmt.Errorf("cannot read the watermarks: %w", err)
	}
	// One from the future, by a clock that was set back, is as new as can be.
	newest = min(newest, time.Now().UnixMilli())
	for until := time.UnixMilli(newest).Add(MarkedWithin); time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Second, time.Until(until))):
		}
		now, _, err := sum()
		if err != nil {
			return fmt.Errorf("cannot read the watermarks: %w", err)
		}
		if now != was {
			return errors.New("a server is using the database. Stop the server first, or send the request to the server with --server")
		}
	}
	return nil
}
