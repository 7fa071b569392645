package clusterdemo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"xtimer/cmd/xtimer/remote"
	"xtimer/engine"
)

// table is what GET /v1/cluster tells.
type table struct {
	Nodes []struct {
		Name   string
		Shards int
	}
	Shards []string // the owner of each, "" for none
}

// look asks the first node that answers.
func (d *demo) look() (t table, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = errors.New("no node runs")
	for _, n := range d.nodes {
		if n.cmd == nil {
			continue
		}
		c := &remote.Plain{Base: n.url()}
		if err = c.Do(ctx, http.MethodGet, "/v1/cluster", nil, &t); err == nil {
			return t, nil
		}
	}
	return t, err
}

// owners are the nodes that own the shards.
func (d *demo) owners() map[int]string {
	t, _ := d.look()
	owners := map[int]string{}
	for shard, name := range t.Shards {
		owners[shard] = name
	}
	return owners
}

// shares says how many shards each node owns.
func (d *demo) shares() string {
	t, err := d.look()
	if err != nil {
		return err.Error()
	}
	var parts []string
	for _, n := range t.Nodes {
		parts = append(parts, fmt.Sprintf("%s %d", n.Name, n.Shards))
	}
	return strings.Join(parts, ", ")
}

// awaitShares waits until each node owns its part of the shards.
func (d *demo) awaitShares(ctx context.Context) error {
	for until := time.Now().Add(patience); time.Now().Before(until); {
		t, err := d.look()
		sum, least := 0, engine.Shards
		for _, n := range t.Nodes {
			sum, least = sum+n.Shards, min(least, n.Shards)
		}
		if err == nil && len(t.Nodes) == len(d.nodes) && sum == engine.Shards && least >= engine.Shards/len(d.nodes) {
			return nil
		}
		if !rest(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("the shards are not divided after %v: %s", patience, d.shares())
}
