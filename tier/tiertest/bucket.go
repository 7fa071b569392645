package tiertest

import (
	"fmt"
	"slices"
	"strings"

	"xtimer/engine"
)

func bucket(name string, fence uint64, until int64, body string) engine.Bucket {
	return engine.Bucket{Name: name, Fence: fence, Until: until, Body: []byte(body)}
}

func (s *cold) bucketsAre(what string, want map[string]string) {
	s.Helper()
	var names, bodies []string
	for _, n := range []string{"b", "none", "a\x00", "a", "a\x00\x01"} {
		names, bodies = append(names, n), append(bodies, want[n])
	}
	got, err := s.Buckets(s.ctx, names)
	s.ok(err)
	for i, b := range got {
		if string(b) != bodies[i] || (b == nil) != (bodies[i] == "") {
			s.Errorf("%s: bucket %q is %q, want %q", what, names[i], b, bodies[i])
		}
	}
}

func buckets(s *cold) {
	s.bucketsAre("none", nil)
	want := map[string]string{"a": "1", "a\x00": strings.Repeat("x", 8000), "b": "\x00'2"}
	var all []engine.Bucket
	for n, body := range want {
		all = append(all, bucket(n, 5, t0+1000, body))
	}
	s.ok(s.PutBuckets(s.ctx, all))
	s.bucketsAre("new ones", want)
	want["a"], want["a\x00\x01"] = "greater", "new"
	s.ok(s.PutBuckets(s.ctx, []engine.Bucket{bucket("a", 7, t0+3000, "greater"), bucket("b", 4, t0+9000, "lower"), bucket("a\x00\x01", 5, t0+3000, "new")}))
	s.bucketsAre("a lower fence and a greater one", want)
	s.ok(s.PutBuckets(s.ctx, []engine.Bucket{bucket("a", 6, t0+9000, "lower")}))
	want["a\x00\x01"] = "newer"
	s.ok(s.PutBuckets(s.ctx, []engine.Bucket{bucket("a\x00\x01", 5, t0+3000, "newer")}))
	s.bucketsAre("a lower fence and the same", want)
	s.ok(s.Close())
	s.ok(s.Open(s.ctx))
	s.bucketsAre("after a restart", want)
	var many []engine.Bucket
	for i := range 1200 {
		many = append(many, bucket(fmt.Sprint("m", i), 1, t0+1000+int64(i%2)*2000, "m"))
	}
	for piece := range slices.Chunk(many, 1000) {
		s.ok(s.PutBuckets(s.ctx, piece))
	}
	for range 20 {
		_, err := s.Sweep(s.ctx, t0+1000, 0, 0)
		s.ok(err)
	}
	delete(want, "a\x00")
	delete(want, "b")
	s.bucketsAre("after their time", want)
	var names []string
	for _, b := range many {
		names = append(names, b.Name)
	}
	got, err := s.Buckets(s.ctx, names)
	s.ok(err)
	for i, b := range got {
		if (b != nil) != (i%2 == 1) {
			s.Errorf("bucket %s is %q", names[i], b)
		}
	}
}
