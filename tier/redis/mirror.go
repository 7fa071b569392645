package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
)

var _ engine.Mirror = (*Mirror)(nil)

// Mirror is what lives have finished and not settled, on the servers of a warm tier, with
// its connections. The key of life 7f:
//
//	xt:{j7f}  a stream: <N>-0 → g: group N, see appendGroup
//
// It expires an hour after the last Append. Only its own life writes a key; those that take
// the shards of the life over read it.
type Mirror struct {
	warm *Warm
	// kept is for how long a key is kept after an Append.
	kept time.Duration
}

const (
	mirrorKept = time.Hour
	// groupsPerRead is how many groups are read at a time.
	groupsPerRead = 16
	groupField    = "g"
)

// Mirror returns the mirror on the servers of the tier.
func (w *Warm) Mirror() *Mirror { return &Mirror{w, mirrorKept} }

func mirrorKey(life uint64) string { return fmt.Sprintf("xt:{j%x}", life) }

// Append adds groups in one transaction, so none is missing before one that is there.
//
// An older copy of the stream, as after a failover, has groups before first in place of newer ones. So
// the length alone does not tell that the stream is whole: no group before first may be there either.
func (m *Mirror) Append(ctx context.Context, life uint64, groups []engine.MirrorGroup, first, last uint64) (whole bool, err error) {
	if err := m.warm.outage.refusal(); err != nil {
		return false, unavailable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.warm.patience)
	defer cancel()
	key, keep := mirrorKey(life), int64(last+1-first)
	var added []*goredis.StringCmd
	var length *goredis.IntCmd
	var earlier *goredis.XMessageSliceCmd
	_, err = m.warm.clients.Load().writes.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		if keep == 0 || len(groups) > 0 && groups[0].N == first {
			p.Del(ctx, key)
		}
		for i := range groups {
			g := &groups[i]
			added = append(added, p.XAdd(ctx, &goredis.XAddArgs{
				Stream: key, ID: fmt.Sprint(g.N, "-0"), Values: []any{groupField, appendGroup(nil, life, g)},
			}))
		}
		p.XTrimMaxLen(ctx, key, keep)
		p.PExpire(ctx, key, m.kept)
		length = p.XLen(ctx, key)
		earlier = p.XRangeN(ctx, key, "-", fmt.Sprint(first-1), 1)
		return nil
	})
	if isSilence(err) {
		m.warm.outage.begin()
		return false, unavailable(err)
	}
	for _, c := range added {
		if err == nil || isThere(err) {
			err = c.Err()
		}
	}
	if err != nil && !isThere(err) {
		m.shrink(ctx, key, first)
		return false, unavailable(err)
	}
	return length.Val() == keep && len(earlier.Val()) == 0, nil
}

// shrink drops the groups before first after Redis has refused an Append. A Redis that is full adds nothing,
// and so carries out no part of an Append, but takes a trim, which makes room. After an error groups stay:
// the next Append that is refused tries again.
func (m *Mirror) shrink(ctx context.Context, key string, first uint64) {
	writes := m.warm.clients.Load().writes
	newest, err := writes.XRevRangeN(ctx, key, "+", "-", 1).Result()
	if err != nil || len(newest) == 0 {
		return
	}
	if last, err := numberOf(newest[0].ID); err == nil && last >= first {
		writes.XTrimMaxLen(ctx, key, int64(last+1-first))
	} else if err == nil {
		writes.Del(ctx, key)
	}
}

// numberOf is the number of the group of an entry.
func numberOf(id string) (uint64, error) {
	n, _, _ := strings.Cut(id, "-")
	return strconv.ParseUint(n, 10, 64)
}

// isThere reports whether a group was refused because a group of its number, or a later one,
// was added before: the reply to that was lost.
func isThere(err error) bool { return strings.Contains(err.Error(), "equal or smaller") }

// Read yields the tasks of a life. A group that is damaged is skipped.
func (m *Mirror) Read(ctx context.Context, life uint64, yield func(task []byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*m.warm.patience)
	defer cancel()
	skipped := 0
	defer func() {
		if skipped > 0 {
			m.warm.log.Warn("groups of a mirror are damaged; what they tell of is called again", "life", life, "groups", skipped)
		}
	}()
	for next := uint64(0); ; next++ {
		page, err := m.page(ctx, life, next)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		for _, entry := range page {
			if next, err = numberOf(entry.ID); err != nil {
				return fmt.Errorf("cannot read the mirror of life %x: the id %q: %w", life, entry.ID, err)
			}
			value, _ := entry.Values[groupField].(string)
			tasks, err := readGroup(life, next, []byte(value))
			if err != nil {
				skipped++
			}
			for _, t := range tasks {
				if err := yield(t); err != nil {
					return err
				}
			}
		}
		if next == 1<<64-1 {
			return nil
		}
	}
}

// page reads some groups, from a number on.
func (m *Mirror) page(ctx context.Context, life, from uint64) ([]goredis.XMessage, error) {
	if err := m.warm.outage.refusal(); err != nil {
		return nil, unavailable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.warm.patience)
	defer cancel()
	page, err := m.warm.clients.Load().reads.XRangeN(ctx, mirrorKey(life), fmt.Sprint(from, "-0"), "+", groupsPerRead).Result()
	if isSilence(err) {
		m.warm.outage.begin()
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return page, nil
}

const groupVersion = 1

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errGroup   = errors.New("a group of a mirror is damaged")
)

// appendGroup appends the stored form of a group:
//
//	version · how many tasks · of each its length, and its bytes · CRC-32C
//
// The checksum covers life and number too: a group under another key or id is noticed.
func appendGroup(b []byte, life uint64, g *engine.MirrorGroup) []byte {
	size := 16
	for _, t := range g.Tasks {
		size += len(t) + 4
	}
	b = append(make([]byte, 0, len(b)+size), b...)
	b = binary.AppendUvarint(append(b, groupVersion), uint64(len(g.Tasks)))
	for _, t := range g.Tasks {
		b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
	}
	return binary.LittleEndian.AppendUint32(b, groupSum(life, g.N, b))
}

func groupSum(life, n uint64, b []byte) uint32 {
	var of [16]byte
	binary.LittleEndian.PutUint64(of[:], life)
	binary.LittleEndian.PutUint64(of[8:], n)
	return crc32.Update(crc32.Checksum(of[:], castagnoli), castagnoli, b)
}

// readGroup reads what appendGroup wrote: all tasks, or errGroup.
func readGroup(life, n uint64, b []byte) (tasks [][]byte, err error) {
	end := len(b) - 4
	if end < 2 || groupSum(life, n, b[:end]) != binary.LittleEndian.Uint32(b[end:]) || b[0] != groupVersion {
		return nil, errGroup
	}
	r := bytes.NewBuffer(b[1:end])
	count, err := binary.ReadUvarint(r)
	if err != nil || count > uint64(r.Len()) {
		return nil, errGroup
	}
	tasks = make([][]byte, 0, count)
	for range count {
		size, err := binary.ReadUvarint(r)
		if err != nil || size > uint64(r.Len()) {
			return nil, errGroup
		}
		tasks = append(tasks, bytes.Clone(r.Next(int(size))))
	}
	if r.Len() > 0 {
		return nil, errGroup
	}
	return tasks, nil
}
