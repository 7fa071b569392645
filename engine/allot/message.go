package allot

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// Shard is the shard whose owner owns a key.
func Shard(n flow.Name) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte{byte(n.Kind)})
	_, _ = h.Write([]byte(n.App))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(n.Key))
	sum := h.Sum32()
	return int(sum^sum>>8^sum>>16^sum>>24) % engine.Shards
}

// ask is what a life asks an owner. Durations are ns.
type ask struct {
	Life uint64 `json:"life"`
	// Number rises with each ask of the life.
	Number uint64 `json:"number"`
	// Told: the owner knows all places that the life has at keys of shards that were the
	// owner's at this number of moves.
	Told uint64   `json:"told"`
	Keys []keyAsk `json:"keys,omitempty"`
}

type keyAsk struct {
	Kind   flow.Kind     `json:"kind"`
	App    string        `json:"app"`
	Key    string        `json:"key"`
	Calls  int           `json:"calls,omitempty"` // see flow.Need
	Kept   int           `json:"kept,omitempty"`
	Holds  int           `json:"holds,omitempty"`
	Unused uint64        `json:"unused,omitempty"`
	Closed time.Duration `json:"closed,omitempty"`
}

func (k *keyAsk) name() flow.Name { return flow.Name{Kind: k.Kind, App: k.App, Key: k.Key} }

// answer has an entry for each key, in order.
type answer struct {
	// Stranger: this node does not know the life yet, or knows that it is over. Nothing was done.
	Stranger bool        `json:"stranger,omitempty"`
	Keys     []keyAnswer `json:"keys,omitempty"`
	// Waited is how long the ask waited at the owner before the calls were granted.
	Waited time.Duration `json:"waited,omitempty"`
}

type keyAnswer struct {
	Elsewhere bool          `json:"elsewhere,omitempty"` // this node does not own the key
	Runs      []run         `json:"runs,omitempty"`
	For       time.Duration `json:"for,omitempty"` // see flow.Run
	Places    int           `json:"places,omitempty"`
	Again     time.Duration `json:"again,omitempty"`
	Closed    time.Duration `json:"closed,omitempty"`
}

type run struct {
	At    time.Duration `json:"at,omitempty"`
	Every time.Duration `json:"every,omitempty"`
	N     int           `json:"n"`
	Last  uint64        `json:"last"`
}

// granted is the answer as the queue takes it; nil: nothing is granted here.
func (k *keyAnswer) granted() *flow.Granted {
	if k.Elsewhere {
		return nil
	}
	g := &flow.Granted{Places: k.Places, Again: k.Again, Closed: k.Closed}
	for _, r := range k.Runs {
		g.Runs = append(g.Runs, flow.Run{At: r.At, Every: r.Every, For: k.For, N: r.N, Last: r.Last})
	}
	return g
}

func read[T any](b []byte) (v T, err error) {
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("cannot read what a node says of flow keys: %w", err)
	}
	return v, nil
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: a message cannot be encoded: " + err.Error())
	}
	return b
}
