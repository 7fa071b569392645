package alert

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
)

// The one of several nodes that judges asks the others every few seconds for what history does
// not tell: the states that hold there, the first attempts that were late, and the failures of
// tasks that were due longer ago than history is searched for, such as redrives. First attempts and
// ends of tasks wait in the rings of the other nodes: a first attempt until the node has told of it once,
// and an end until a question says that the end was judged, since an answer may be lost. A node that begins
// to judge may count ends again that were judged since the last question. Of a node that lives and does
// not answer, the states of its last answer hold.

// Ask has each of the other nodes answer a message by its Report. The answers are by the names
// of the nodes, nil for one that lives and does not answer.
type Ask func(ctx context.Context, message []byte) map[string][]byte

// AskBy has the other nodes asked; nobody may call it after Run.
func (a *Alerter) AskBy(ask Ask) { a.ask = ask }

// question is what the node that judges asks.
type question struct {
	// Watched are timers of which a first attempt matters that was not late.
	Watched []engine.TimerID `json:"watched"`
	// Judged is up to which number the ends of tasks were judged, by the lives of the nodes; nil
	// of an older version, which judges the ends of an answer, or loses them.
	Judged map[string]uint64 `json:"judged"`
}

// report is what another node answers.
type report struct {
	States []State `json:"states"`
	Firsts []first `json:"firsts"`
	// Ends are those that wait first. Of those behind the ring, the app is "".
	Ends []event `json:"ends,omitempty"`
	// The ends have the numbers from Left+1 on in a life of the node; an older version names none ("").
	Life string `json:"life"`
	Left uint64 `json:"left"`
}

// first is a first attempt.
type first struct {
	Timer     engine.TimerID `json:"timer"`
	Due       int64          `json:"due"`
	App, Name string
	At        int64  `json:"at"`
	Late      uint32 `json:"late"`
}

// mostTold is how many ends of tasks a node tells of at a time, rounded up to a whole page.
const mostTold = 10_000

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
		firsts := a.ring.tell(q.Judged, &r)
		a.ring.watched() // nobody asks here for the timers of failures
		for ; firsts.len > 0; firsts.drop(1) {
			ev := &firsts.first(1)[0]
			r.Firsts = append(r.Firsts, first{Timer: ev.Key.Timer, Due: ev.Key.Due, App: ev.App, Name: ev.Name, At: ev.Ended, Late: ev.N})
		}
	}
	return json.Marshal(&r)
}

// tell drops the ends of tasks that were judged, and puts those into a report that wait first. It
// takes the first attempts.
func (r *ring) tell(judged map[string]uint64, to *report) (firsts queue[event]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life == "" {
		r.life = rand.Text()
	}
	r.dropUpTo(judged[r.life])
	to.Life, to.Left = r.life, r.left
	for n := 0; n < len(r.events.pages) && len(to.Ends) < mostTold; n++ {
		to.Ends = append(to.Ends, r.events.pages[n]...)
	}
	for n := 0; r.events.len == 0 && n < len(r.briefs.pages) && len(to.Ends) < mostTold; n++ {
		for i := range r.briefs.pages[n] {
			to.Ends = append(to.Ends, r.briefs.pages[n][i].named("", ""))
		}
	}
	if judged == nil {
		r.dropUpTo(r.left + uint64(len(to.Ends)))
	}
	firsts, r.firsts = r.firsts, queue[event]{}
	return firsts
}

// dropUpTo drops the ends up to a number. r.mu is held.
func (r *ring) dropUpTo(number uint64) {
	for ; r.left < number && r.events.len > 0; r.left++ {
		r.events.drop(1)
	}
	for ; r.left < number && r.briefs.len > 0; r.left++ {
		r.briefs.drop(1)
	}
}

// askOthers judges the first attempts and the failures that other nodes tell of, and notes their states.
func (a *Alerter) askOthers(ctx context.Context) {
	if a.ask == nil {
		return
	}
	q := question{Judged: a.lead.judged}
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
	asking, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	states, lives, all := map[string][]State{}, map[string]bool{}, true
	for node, answer := range a.ask(asking, message) {
		var r report
		if answer == nil || json.Unmarshal(answer, &r) != nil {
			states[node], all = a.lead.states[node], false
			continue
		}
		states[node], lives[r.Life] = r.States, true
		a.judgeReport(ctx, &r)
	}
	a.lead.states = states
	if all {
		maps.DeleteFunc(a.lead.judged, func(life string, _ uint64) bool { return !lives[life] })
	}
}

// judgeReport judges what another node tells of, until a definition cannot be read. The ends of tasks
// from there on are told again; the first attempts are not.
func (a *Alerter) judgeReport(ctx context.Context, r *report) {
	var firsts []event
	for _, f := range r.Firsts {
		firsts = append(firsts, event{
			Key: engine.Key{Timer: f.Timer, Due: f.Due}, App: f.App, Name: f.Name, Ended: f.At, Status: firstAttempt, N: f.Late,
		})
	}
	for page := range slices.Chunk(firsts, pageSize) {
		if !a.judgeEvents(ctx, page) {
			return
		}
	}
	for page := range slices.Chunk(r.Ends, pageSize) {
		if !a.judgeEnds(ctx, page) {
			return
		}
		r.Left += uint64(len(page))
		a.lead.judged[r.Life] = r.Left
	}
}

// judgeEnds judges ends of tasks that waited in the ring of another node, or all behind it.
func (a *Alerter) judgeEnds(ctx context.Context, page []event) bool {
	if page[0].App != "" {
		return a.judgeEvents(ctx, page)
	}
	briefs := make([]brief, len(page))
	for i := range page {
		briefs[i] = briefOf(&page[i])
	}
	return a.judgePage(ctx, briefs, nil)
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
