package flow

import "time"

// Limit is what a key allows. Zero fields limit nothing.
type Limit struct {
	// Rate calls per Per, evenly spaced but for Burst at once: see Bucket.
	Rate  int
	Per   time.Duration
	Burst int
	// Concurrency bounds the calls in flight; HoldTask: a place is kept from the first
	// attempt of a task to its final status, also while it waits for the next attempt.
	Concurrency int
	HoldTask    bool
	// Cooldown: an answer that asks for it closes the key for a while.
	Cooldown bool
	Breaker  Breaker
}

// Breaker opens a key when Share of the last Of outcomes, all within Within, were bad; 0: never.
// It tries one call after Open, and after a time that doubles up to MaxOpen while that
// one is bad, too.
type Breaker struct {
	Share         float64
	Of            int
	Within        time.Duration
	Open, MaxOpen time.Duration
}

// MaxCooldown is the longest that an answer can close a key for.
const MaxCooldown = 5 * time.Minute

// LongestStart is the longest that a key waits after a start before its first call.
const LongestStart = time.Minute
