//go:build !linux

package main

import (
	"errors"
	"time"
)

// clock cannot tell here how well the clock is kept.
func (r *report) clock() { r.line("clock", "synchronised", "unknown on this system") }

func clockSynchronised() (bool, error) { return false, errors.ErrUnsupported }

func sinceBoot() (time.Duration, error) { return 0, errors.ErrUnsupported }
