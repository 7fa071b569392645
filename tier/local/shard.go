package local

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
)

func shardKey(b []byte, shard int) []byte { return append(b, kindShard, byte(shard)) }

func encodeShard(b []byte, sh engine.Shard) []byte {
	b = append(b, valueVersion)
	b = binary.AppendUvarint(b, sh.Fence)
	b = binary.AppendVarint(b, sh.Watermark)
	return append(b, sh.Owner...)
}

func decodeShard(b []byte) (sh engine.Shard, err error) {
	if len(b) == 0 || b[0] != valueVersion {
		return sh, errShort
	}
	b = b[1:]
	var n, m int
	if sh.Fence, n = binary.Uvarint(b); n <= 0 {
		return sh, errShort
	}
	if sh.Watermark, m = binary.Varint(b[n:]); m <= 0 {
		return sh, errShort
	}
	sh.Owner = string(b[n+m:])
	return sh, nil
}

// Shards reads fence and watermark of all shards, in order.
func (s *Store) Shards(context.Context) ([]engine.Shard, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	return readShards(w)
}

// Take takes all shards for a node.
func (s *Store) Take(ctx context.Context, owner string) ([]engine.Shard, engine.TimerID, error) {
	var shards []engine.Shard
	var newest engine.TimerID
	err := s.do(ctx, engine.Shards, func(g *group) error {
		for i, sh := range g.st.shards {
			g.mark(owner, engine.Mark{Shard: i, Fence: sh.Fence + 1, W: sh.Watermark})
		}
		shards, newest = slices.Clone(g.st.shards[:]), g.st.newest
		return nil
	})
	if err != nil {
		return nil, 0, err // the committer may still write to them
	}
	return shards, newest, nil
}

func readShards(r pebble.Reader) ([]engine.Shard, error) {
	out := make([]engine.Shard, engine.Shards)
	err := scan(r, []byte{kindShard}, []byte{kindShard + 1}, func(k, v []byte) (bool, error) {
		if len(k) != 2 {
			return false, damaged(k, errKey)
		}
		sh, err := decodeShard(v)
		if err != nil {
			return false, damaged(k, err)
		}
		out[k[1]] = sh
		return true, nil
	})
	return out, err
}

// mark moves one watermark forward.
func (g *group) mark(owner string, m engine.Mark) {
	sh := g.st.shards[m.Shard]
	was := sh
	sh.Fence, sh.Owner, sh.Watermark = m.Fence, owner, max(sh.Watermark, m.W)
	if sh == was {
		return
	}
	g.st.shards[m.Shard] = sh
	g.st.clock = max(g.st.clock, sh.Watermark)
	g.put(shardKey(nil, m.Shard), encodeShard(nil, sh))
}
