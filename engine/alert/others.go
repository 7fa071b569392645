package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
)

// The one of several nodes that judges asks the others every few seconds for what history does
// not tell: the states that hold there, the first attempts that were late, and the failures of
// tasks that were due longer ago than history is searched for, such as redrives. What another
// node has for it waits in that node's ring. Of a node that lives and does not answer, the
// states hold that it told of last.

// Ask has each of the other nodes answer a message by its Report. The answers are by the names
// of the nodes, nil for one that lives and does not answer.
type Ask func(ctx context.Context, message []byte) map[string][]byte

// AskBy has the other nodes asked; nobody may call it after Run.
func (a *Alerter) AskBy(ask Ask) { a.ask = ask }

// question is what the node that judges asks.
type question struct {
	// Watched are timers of which a first attempt matters that was not late.
	Watched []engine.TimerID `json:"watched"`
}

// report is what another node answers.
type report struct {
	States []State `json:"states"`
	Firsts []first `json:"firsts"`
	Ends   []event `json:"ends,omitempty"`
}

// first is a first attempt.
type first struct {
	Timer     engine.TimerID `json:"timer"`
	Due       int64          `json:"due"`
	App, Name string
	At        int64  `json:"at"`
	Late      uint32 `json:"late"`
}

// keptFirst is for how long a first attempt waits to be asked for.
const keptFirst = 30 * time.Second

// askWait is how long the other nodes may take to answer.
const askWait = 2 * time.Second

// Report answers the node that judges.
func (a *Alerter) Report(message []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(message, &q); err != nil {
		return nil, fmt.Errorf("the message of the node that judges cannot be read: %w", err)
	}
	var r report
	if a.cfg.States != nil {
		r.States = a.cfg.States()
	}
	if !a.lead.has.Load() { // for a moment there may be two that judge
		watched := make(map[engine.TimerID]bool, len(q.Watched))
		for _, id := range q.Watched {
			watched[id] = true
		}
		a.watch.replace(watched, nil)
		for events := a.ring.take(); events.len > 0; events.drop(1) {
			ev := &events.first(1)[0]
			if ev.Status != firstAttempt {
				r.Ends = append(r.Ends, *ev)
				continue
			}
			r.Firsts = append(r.Firsts, first{Timer: ev.Key.Timer, Due: ev.Key.Due, App: ev.App, Name: ev.Name, At: ev.Ended, Late: ev.N})
		}
	}
	return json.Marshal(&r)
}

// askOthers judges the first attempts and the failures that other nodes tell of, and notes their states.
func (a *Alerter) askOthers(ctx context.Context) {
	if a.ask == nil {
		return
	}
	var q question
	a.mu.Lock()
	for id, groups := range a.judge.of {
		if slices.ContainsFunc(groups, func(g *group) bool { return g.open != nil && g.isLate() }) && len(q.Watched) < mostLooked {
			q.Watched = append(q.Watched, id)
		}
	}
	a.mu.Unlock()
	message, err := json.Marshal(&q)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	states := map[string][]State{}
	var events []event
	for node, answer := range a.ask(ctx, message) {
		var r report
		if answer == nil || json.Unmarshal(answer, &r) != nil {
			states[node] = a.lead.states[node]
			continue
		}
		states[node] = r.States
		events = append(events, r.Ends...)
		for _, f := range r.Firsts {
			events = append(events, event{
				Key: engine.Key{Timer: f.Timer, Due: f.Due}, App: f.App, Name: f.Name, Ended: f.At, Status: firstAttempt, N: f.Late,
			})
		}
	}
	a.lead.states = states
	for page := range slices.Chunk(events, pageSize) {
		if !a.judgeEvents(ctx, page) {
			return // events of a timer that cannot be read are not told
		}
	}
}

// withOthers are the states of this node and of the others: a backlog is the sum of all.
func (a *Alerter) withOthers(all []State) []State {
	of := func(s State) State { return State{Word: s.Word, App: s.App, Of: s.Of} } // all but N
	at := make(map[State]int, len(all))                                            // the place in all
	for i, s := range all {
		at[of(s)] = i
	}
	for _, states := range a.lead.states {
		for _, s := range states {
			if i, is := at[of(s)]; is {
				all[i].N += s.N
				continue
			}
			at[of(s)] = len(all)
			all = append(all, s)
		}
	}
	return all
}
