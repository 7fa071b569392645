// Package resident has the timers and tasks that are in memory: those with something in
// the wheel or under way. Everything else is in the tiers.
package resident
