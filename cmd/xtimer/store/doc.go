// Package store is the data directory of a server, and the tiers that its settings name.
package store
