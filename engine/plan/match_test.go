package plan

import "testing"

func TestMatchSuccess(t *testing.T) {
	for _, c := range []struct {
		spec string
		yes  []int
		no   []int
	}{
		{"2xx", []int{200, 204, 299}, []int{199, 300, 500, 0, -1}},
		{"200", []int{200}, []int{201, 20, 2000}},
		{"200,202,300-399", []int{200, 202, 300, 350, 399}, []int{201, 299, 400}},
		{"2xx,404,5xx", []int{250, 404, 599}, []int{403, 302}},
		{"100-599", []int{100, 599}, []int{99, 600}},
		{"", nil, []int{0, 200}},
		{"junk", nil, []int{0, 200}},
	} {
		for _, code := range c.yes {
			if !MatchSuccess(c.spec, code) {
				t.Errorf("%q does not match %d", c.spec, code)
			}
		}
		for _, code := range c.no {
			if MatchSuccess(c.spec, code) {
				t.Errorf("%q matches %d", c.spec, code)
			}
		}
	}
	for _, bad := range []string{"", "2x", "0xx", "6xx", "20", "2000", "200,", ",200", "200-", "300-200", "200 ", "x", "2XX", "200-2xx", "099", "600", "-200"} {
		if checkSuccess(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if n := testing.AllocsPerRun(100, func() { MatchSuccess("200,202,300-399", 500) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMatchSuccess(b *testing.B) {
	for _, spec := range []string{"2xx", "200,202,300-399"} {
		b.Run(spec, func(b *testing.B) {
			for b.Loop() {
				MatchSuccess(spec, 301)
			}
		})
	}
}
