package local

import "context"

const minute = 60_000 // ms

func leftOutKey(m int64) []byte { return appendTime([]byte{kindLeftOut}, m) }

// LeftOut returns the minutes of [from, to) whose history is incomplete.
func (s *Store) LeftOut(_ context.Context, from, to int64) (minutes []int64, err error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	err = scan(w, leftOutKey(from-minute+1), leftOutKey(to), func(k, _ []byte) (bool, error) {
		if len(k) != 7 {
			return false, damaged(k, errKey)
		}
		minutes = append(minutes, readTime(k[1:]))
		return true, nil
	})
	return minutes, err
}

// forgetLeftOut removes the notes of minutes that are older than history.
func (s *Store) forgetLeftOut(ctx context.Context, before int64) (more bool, err error) {
	ks, more, err := s.keys([]byte{kindLeftOut}, leftOutKey(before-minute+1), sweepPiece)
	if len(ks) == 0 || err != nil {
		return false, err
	}
	return more, s.do(ctx, len(ks), func(g *group) error {
		for _, k := range ks {
			g.delete(k)
		}
		return nil
	})
}
