package flow

import "time"

// Limit is what a key allows. Zero fields limit nothing.
type Limit struct {
	// Rate calls per Per, evenly spaced but for Burst at once: see Bucket.
	Rate  int           `json:"rate,omitempty"`
	Per   time.Duration `json:"per,omitempty"`
	Burst int           `json:"burst,omitempty"`
	// Concurrency bounds the calls in flight; HoldTask: a place is kept from the first
	// attempt of a task to its final status, also while it waits for the next attempt.
	Concurrency int  `json:"concurrency,omitempty"`
	HoldTask    bool `json:"hold_task,omitempty"`
	// Cooldown: an answer that asks for it closes the key for a while.
	Cooldown bool    `json:"cooldown,omitempty"`
	Breaker  Breaker `json:"breaker,omitzero"`
}

// hasRateOf reports whether two limits have the same bucket.
func (l *Limit) hasRateOf(o *Limit) bool {
	return l != nil && o != nil && l.Rate == o.Rate && l.Per == o.Per && l.Burst == o.Burst
}

// Breaker opens a key when Share of the last Of outcomes, all within Within, were bad; 0: never.
// It tries one call after Open, and after a time that doubles up to MaxOpen while that
// one is bad, too.
type Breaker struct {
	Share   float64       `json:"share"`
	Of      int           `json:"of"`
	Within  time.Duration `json:"within"`
	Open    time.Duration `json:"open"`
	MaxOpen time.Duration `json:"max_open"`
}

// MaxCooldown is the longest that an answer can close a key for.
const MaxCooldown = 5 * time.Minute

// LongestStart is the longest that a key waits before its first call after a start, or after its
// owner has changed.
const LongestStart = time.Minute
