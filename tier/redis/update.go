package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
)

// Update replaces a definition wherever one is kept. Without Redis it is done
// too: the shard's definitions are not told any more.
func (w *Warm) Update(ctx context.Context, id engine.TimerID, definition []byte) {
	u := &updating{sh: w.shards[id.Shard()], id: id}
	version := uint32(gone)
	if definition != nil {
		if value, v, err := versioned(definition); err == nil { // else it is not told at all
			u.value, version = value, v
		}
	}
	u.sh.mu.Lock()
	u.sh.updated.note(id, version)
	u.sh.mu.Unlock()
	_ = w.write(context.WithoutCancel(ctx), []*call{{change: u, sh: u.sh, size: 1}}) // see fail
}

// updating is an Update on its way.
type updating struct {
	sh    *shard
	id    engine.TimerID
	value string // "": the timer is gone
}

func (u *updating) build() (script *goredis.Script, keys []string, args []any, ok bool) {
	for h := range u.sh.hours {
		keys = append(keys, u.sh.hourKey(h))
	}
	return updateScript, keys, []any{member(u.id), u.value}, len(keys) > 0
}

func (u *updating) adopt([]any) {}

// fail keeps the promise in another way: a definition that may be a former one
// is not told.
func (u *updating) fail(bool) { clear(u.sh.hours) }
