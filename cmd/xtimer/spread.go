package main

import (
	"slices"
	"time"
)

// spread of measurements.
type spread struct{ p50, p99, max time.Duration }

// spreadOf sorts the measurements and reads it off.
func spreadOf(ds []time.Duration) spread {
	if len(ds) == 0 {
		return spread{}
	}
	slices.Sort(ds)
	at := func(q float64) time.Duration { return ds[min(int(q*float64(len(ds))), len(ds)-1)] }
	return spread{at(0.50), at(0.99), ds[len(ds)-1]}
}
