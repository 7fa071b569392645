package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"xtimer/engine"
	"xtimer/httpapi/access"
)

// TimersPath is where a node asks another how the timers of that node stand. It is for nodes
// alone, and in no document.
const TimersPath = "/v1/internal/timers"

// TimersAsk asks how timers stand, with their last tasks if Last is set.
type TimersAsk struct {
	IDs  []engine.TimerID
	Last bool
}

// Told is what the owner of a timer tells of it.
type Told struct {
	ID       engine.TimerID
	Status   engine.Status
	NextDue  int64  `json:",omitempty"`
	LastTask []byte `json:",omitempty"` // as history stores it
}

// TimersTold is the answer. Elsewhere: the node does not have all of them.
type TimersTold struct {
	Timers    []Told
	Elsewhere bool
}

// AskTimers asks the owners of timers, all at once. After an error some have not told of theirs.
func AskTimers(ids []engine.TimerID, last bool, owner func(shard int) (Node, bool), ask func(Node, *Request) (Answer, error)) (told []Told, err error) {
	by, of := map[uint64]Node{}, map[uint64][]engine.TimerID{} // lives
	for _, id := range ids {
		n, ok := owner(id.Shard())
		if !ok {
			err = errNoOwner
			continue
		}
		by[n.Life], of[n.Life] = n, append(of[n.Life], id)
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for life, n := range by {
		asked.Go(func() {
			one, e := askTimers(n, &TimersAsk{of[life], last}, ask)
			mu.Lock()
			defer mu.Unlock()
			if told = append(told, one...); e != nil {
				err = fmt.Errorf("node %s: %w", n.Name, e)
			}
		})
	}
	asked.Wait()
	return told, err
}

func askTimers(n Node, q *TimersAsk, ask func(Node, *Request) (Answer, error)) ([]Told, error) {
	b, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	a, err := ask(n, &Request{
		Method: http.MethodPost, Target: TimersPath, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: b,
		For: access.Grant{App: access.AllApps, Role: access.RoleAdmin, Name: "another node"},
	})
	var told TimersTold
	switch {
	case err != nil:
		return nil, err
	case a.Status != http.StatusOK:
		return nil, fmt.Errorf("the node answers with status %d", a.Status)
	}
	if err := json.Unmarshal(a.Body, &told); err != nil {
		return nil, err
	}
	if told.Elsewhere {
		err = errNoOwner
	}
	return told.Timers, err
}

// ReadTimersAsk reads what another node asks.
func ReadTimersAsk(b []byte) (q TimersAsk, err error) {
	if err := json.Unmarshal(b, &q); err != nil {
		return q, fmt.Errorf("cannot read what a node asks of timers: %w", err)
	}
	return q, nil
}

var errNoOwner = errors.New("no node owns some of the timers at present")
