package alert

import (
	"strings"
	"sync"
	"time"

	"xtimer/engine"
)

// Delivered is a message to a channel, and what came of it.
type Delivered struct {
	At       int64 // Unix ms: of the last attempt
	ID       string
	Type     string // as that of a Message
	Incident string // "": a digest, or a test
	By       string // of the incident
	Count    int    // of a digest: how many incidents
	Attempts int
	Outcome  string // delivered, refused, given_up; retrying: it is sent again
	Status   int    // of the answer; 0: there was none
	Answer   string // its beginning
	Error    string // of a secret that is missing: the word and its name
}

// Bounds of what is kept in memory.
const (
	keptOfChannel = 20
	keptChannels  = 1000 // those that were sent something last
	keptAnswer    = 200  // bytes
)

// deliveries are the last messages of each channel. They end with the process.
type deliveries struct {
	mu sync.Mutex
	of map[engine.ObjectKey][]Delivered // guarded by mu; the newest is the last
}

// note notes an attempt to send a message.
func (s *deliveries) note(k engine.ObjectKey, m *Message, r *Result, outcome string) {
	d := Delivered{
		At: time.Now().UnixMilli(), ID: m.ID, Type: m.Type, Count: m.Count, Attempts: 1, Outcome: outcome,
		Status: r.Status, Answer: beginning(r.Answer), Error: beginning(strings.TrimSpace(r.Error + " " + r.Secret)),
	}
	if m.Incident != nil {
		d.Incident, d.By = m.Incident.ID, m.Incident.By
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.of[k]
	for i := range list {
		if list[i].ID == d.ID && list[i].Outcome == "retrying" {
			d.Attempts = list[i].Attempts + 1
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if len(list) >= keptOfChannel {
		list = append(list[:0], list[1:]...)
	}
	if s.of == nil {
		s.of = map[engine.ObjectKey][]Delivered{}
	}
	if _, known := s.of[k]; !known && len(s.of) >= keptChannels {
		s.dropOldest()
	}
	s.of[k] = append(list, d)
}

// dropOldest forgets the channel that was sent nothing for the longest time. s.mu is held.
func (s *deliveries) dropOldest() {
	var oldest engine.ObjectKey
	at := int64(0)
	for k, list := range s.of {
		if last := list[len(list)-1].At; at == 0 || last < at {
			oldest, at = k, last
		}
	}
	delete(s.of, oldest)
}

func (s *deliveries) forget(k engine.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, k)
}

// Deliveries are the last messages that this process sent to a channel, the newest first.
func (a *Alerter) Deliveries(app, channel string) []Delivered {
	a.delivered.mu.Lock()
	defer a.delivered.mu.Unlock()
	list := a.delivered.of[engine.ObjectKey{Kind: ChannelKind, App: app, Name: channel}]
	all := make([]Delivered, 0, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		all = append(all, list[i])
	}
	return all
}

// channelChanged has what waits for a channel sent, and forgets what was sent to one that is gone.
func (a *Alerter) channelChanged(k engine.ObjectKey) {
	a.box.changed(k, false)
	if k.Name != "" && a.cfg.Objects.Get(k) == nil {
		a.delivered.forget(k)
	}
}

// beginning is how a text begins, as valid UTF-8.
func beginning(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), keptAnswer)], "")
}
