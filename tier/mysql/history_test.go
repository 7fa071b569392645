package mysql

import (
	"testing"

	"xtimer/engine"
)

// TestForgetManyLeftOut: no transaction removes more minutes than there is time for, and
// with enough of them all are removed that are before history begins.
func TestForgetManyLeftOut(t *testing.T) {
	s := opened(t)
	const begins = benchNow - benchNow%minute
	st := &engine.Settlement{Owner: "n", LeftOut: []int64{begins}}
	for i := range int64(12_000) {
		st.LeftOut = append(st.LeftOut, begins-(i+1)*minute)
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for more := true; more; calls++ {
		var err error
		if more, err = s.forgetLeftOut(t.Context(), begins); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 3 {
		t.Errorf("%d transactions, want 3", calls)
	}
	if left, err := s.LeftOut(t.Context(), 0, engine.MaxDue); err != nil || len(left) != 1 || left[0] != begins {
		t.Errorf("%d minutes are left, %v", len(left), err)
	}
}
