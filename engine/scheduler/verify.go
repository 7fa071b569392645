package scheduler

import (
	"context"
	"time"

	"xtimer/engine/verify"
)

// Verify holds history against the plan while the engine runs, paced so that
// firing does not suffer. It calls tell with each finding.
func (e *Scheduler) Verify(ctx context.Context, v verify.Request, tell func(*verify.Finding) error) (verify.Verdict, error) {
	if err := e.serving(); err != nil {
		return verify.Verdict{}, err
	}
	v.Sampled = v.Sampled || e.cfg.HistorySampled
	pace := func(worked time.Duration) {
		if waiting, _ := e.queue.Load(); waiting > 0 {
			worked *= 4 // calls are late already
		}
		sleep(ctx, worked)
	}
	return verify.Online(ctx, e.cfg.Cold, v, e.now(), e.cfg.HistoryRetention, pace, tell)
}

// CheckVerification finds what is wrong with a request.
func (e *Scheduler) CheckVerification(v verify.Request) error {
	return v.Check(e.now(), e.cfg.HistoryRetention)
}
