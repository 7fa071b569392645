package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/httpapi/client"
)

// strict takes so many timers of each batch, and refuses the others by the quota of creates.
// A timer called "big" is beyond what the app may have.
type strict struct {
	most   int
	rounds []int // timers of each batch
	made   []string
}

func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var results []string
	made := 0
	for line := range bytes.Lines(body) {
		_, name, _ := strings.Cut(string(line), `"name":"`)
		name, _, _ = strings.Cut(name, `"`)
		switch {
		case name == "big":
			results = append(results, `{"status":429,"error":{"status":429,"code":"quota_exceeded"}}`)
		case made == s.most:
			results = append(results, fmt.Sprintf(`{"status":429,"error":{"status":429,"code":"rate_limited","detail":"timers[%d].x"}}`, len(results)))
		default:
			made++
			s.made = append(s.made, name)
			results = append(results, fmt.Sprintf(`{"status":201,"id":%q}`, "id of "+name))
		}
	}
	s.rounds = append(s.rounds, len(results))
	answer := `{"results":[` + strings.Join(results, ",") + `]}`
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// What a quota of creates refuses of a batch is made a second later; what is beyond the number
// of timers is not.
func TestABatchBeyondAQuota(t *testing.T) {
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprint("n", i))
	}
	defs := func(yield func(client.Definition) bool) {
		for _, name := range slices.Insert(slices.Clone(names), 2, "big") {
			if !yield(hourly(name)) {
				return
			}
		}
	}
	for _, c := range []struct {
		most   int
		rounds []int
		took   time.Duration
		made   int
	}{
		{9, []int{6}, 0, 5},
		{2, []int{6, 3, 1}, 2 * time.Second, 5},
		{0, []int{6, 5, 5, 5, 5}, 4 * time.Second, 0}, // given up
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &strict{most: c.most}
			x, err := client.New("http://xtimer.test/", client.WithHTTPClient(&http.Client{Transport: s}))
			if err != nil {
				t.Fatal(err)
			}
			start, i := time.Now(), 0
			for r, err := range x.CreateAll(t.Context(), defs) {
				switch {
				case err != nil:
					t.Fatal(err)
				case i == 2:
					if r.Error == nil || r.Error.Code != "quota_exceeded" {
						t.Errorf("of the timer that is too many: %+v", r)
					}
				case (r.Error == nil) != (c.made > 0) || r.Error == nil && r.ID != "id of "+names[i-min(i/3, 1)]:
					t.Errorf("of timer %d: %+v", i, r)
				}
				i++
			}
			took := time.Since(start)
			if i != 6 || len(s.made) != c.made || !slices.Equal(s.rounds, c.rounds) || took < c.took || took > c.took+time.Second {
				t.Errorf("%d outcomes, made %v in batches of %v, took %v", i, s.made, s.rounds, took)
			}
		})
	}
}

// A create beyond the rate is made again after Retry-After; one beyond the number of timers is not.
func TestACreateBeyondAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, step{status: 429, header: "1", body: `{"code":"rate_limited"}`}, step{status: 201, body: "{}"})
		if _, err := c.Create(t.Context(), hourly("n")); err != nil || len(s.seen) != 2 || s.at[1].Sub(s.at[0]) < time.Second {
			t.Errorf("%v after %d tries", err, len(s.seen))
		}
		c, s = scripted(t, step{status: 429, body: `{"code":"quota_exceeded"}`})
		if _, err := c.Create(t.Context(), hourly("n")); err == nil || len(s.seen) != 1 {
			t.Errorf("%v after %d tries", err, len(s.seen))
		}
	})
}
