package figures

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/golden"
	"xtimer/cmd/xtimer/remote"
	api "xtimer/httpapi/client"
)

func TestTables(t *testing.T) {
	at := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	busy := api.AppFigures{App: "billing", Waiting: 4, InFlight: 2, MoreTargets: 3}
	busy.Timers.Enabled = 12
	busy.LastMinute = api.Outcomes{FiresPerSecond: 1.5, LatenessP50MS: new(0.4), LatenessP99MS: new(1.9)}
	busy.LastHour = api.Outcomes{Succeeded: 88, Failed: 1, Dead: 2}
	busy.Targets = []api.TargetFigures{
		{Target: "https://example.com:443", Answering: true, InFlight: 2, AttemptsOK: 88, TookP50MS: new(11.0), TookP99MS: new(30.25)},
		{Target: "http://127.0.0.1:9", Waiting: 4, AttemptsFailed: 9},
	}
	var out strings.Builder
	if err := tableApps(&out, &api.AppPage{Now: at.Add(time.Hour), Since: at, Apps: []api.AppFigures{busy, {App: "订单"}}}, "utc"); err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/top.txt", out.String())

	s := &api.Stats{DueByMinute: []int64{1, 2}, UptimeSeconds: 90, Tiers: map[string]bool{"cold": true, "warm": false}, Warnings: []api.Warning{{Code: "late", Detail: "a\ntarget"}}}
	s.Timers.Enabled, s.Tasks.Overdue, s.Tasks.OldestOverdueMS = 3, 1, 1500
	s.Pause = &api.PauseState{Since: at, Until: at.Add(time.Hour), By: "root", Reason: "repairs"}
	s.Tasks.SinceStart = map[string]int64{"succeeded": 5, "dead": 0}
	out.Reset()
	if err := sheetStats(&out, s, func(t time.Time) string { return t.Format(time.TimeOnly) }); err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/stats.txt", out.String())
}

// TestClusterTable: the nodes, what no node owns, and the last moves.
func TestClusterTable(t *testing.T) {
	c := &api.Cluster{Node: "b", Cluster: true, LeaseMS: 1800, SlowestBeatMS: 812, LeaseTooShort: true, Shards: []string{"a", "", "b", ""}, Nodes: []api.Node{
		{Name: "a", Address: "10.0.0.1:8080", State: "serving", Weight: 1, Shards: 86, BeatAgeMS: 312},
		{Name: "b", Address: "10.0.0.2:8080", State: "unfit", Weight: 2, Shards: 168, Reason: "clock", ClockOffsetMS: -5012},
	}, Moves: []api.Move{
		{At: time.Date(2026, 11, 20, 17, 0, 1, 0, time.UTC), How: "takeover", From: "c", To: "b", GapMS: 2100, Shards: []int{3, 9}},
		{At: time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC), How: "start", To: "a", GapMS: 200, Shards: []int{0}},
	}}
	var out strings.Builder
	if err := tableCluster(&out, c, func(t time.Time) string { return t.Format(time.TimeOnly) }); err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/cluster.txt", out.String())
}

// TestClusterDrain: drain waits until the node owns no shards, and says so if it keeps some.
func TestClusterDrain(t *testing.T) {
	t.Setenv("XTIMER_TOKEN", "x")
	drainLook, drainMost = time.Millisecond, 100*time.Millisecond
	var asked []string
	left := 3
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked = append(asked, q.Method+" "+q.URL.Path)
		if q.URL.Path != "/v1/cluster" {
			_, _ = io.WriteString(w, `{"name":"b","shards":2}`)
			return
		}
		left--
		shards := []string{`"a"`}
		for range left {
			shards = append(shards, `"b"`)
		}
		_, _ = io.WriteString(w, `{"cluster":true,"shards":[`+strings.Join(shards, ",")+`]}`)
	}))
	defer server.Close()
	run := func(args ...string) (string, error) {
		var out strings.Builder
		c := NewCluster()
		c.SilenceUsage, c.SilenceErrors = true, true
		c.SetOut(&out)
		c.SetArgs(append(args, "--server", server.URL))
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, x := range [][]string{
		{"b gave 2 shards away\n", "drain", "b"},
		{"b gets its part of the shards\n", "drain", "b", "--undo"},
		{"b ends; the other nodes take its 2 shards\n", "evict", "b"},
	} {
		if out, err := run(x[1:]...); err != nil || out != x[0] {
			t.Errorf("%q, %v", out, err)
		}
	}
	const cluster = "GET /v1/cluster"
	if want := []string{"POST /v1/cluster/nodes/b/drain", cluster, cluster, cluster, "DELETE /v1/cluster/nodes/b/drain", "POST /v1/cluster/nodes/b/evict"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	left = 1 << 20
	if _, err := run("drain", "b"); err == nil || !strings.Contains(err.Error(), "still owns") {
		t.Error(err)
	}
}

// TestLive: top draws the table in the place of the former one, waits for a server that is
// unavailable, and ends at Ctrl-C.
func TestLive(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	reads := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch reads++; reads {
		case 1:
			_, _ = w.Write([]byte(`{"exact":true,"apps":[{"app":"billing"},{"app":"shop"}]}`))
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		default:
			_, _ = w.Write([]byte(`{"exact":true,"apps":[{"app":"shop"}]}`))
		}
	}))
	defer server.Close()
	c, err := api.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var screens []string
	draw := screen(func(text string) error {
		if screens = append(screens, text); len(screens) == 3 {
			interrupt()
		}
		return nil
	})
	if err := live(ctx, draw, &remote.Server{Client: c, Zone: "utc"}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(screens) != 3 {
		t.Fatalf("%d screens were drawn, not 3", len(screens))
	}
	for i, want := range []string{"billing", "waiting for the server", "shop"} {
		text := screens[i]
		if !strings.HasPrefix(text, "\x1b[H") || !strings.HasSuffix(text, "\x1b[J") || !strings.Contains(text, want) || strings.Contains(strings.ReplaceAll(text, "\x1b[K\n", ""), "\n") {
			t.Errorf("screen %d is %q, without %q", i+1, text, want)
		}
	}
	if strings.Contains(screens[2], "billing") {
		t.Errorf("the third screen shows an app that is gone: %q", screens[2])
	}
}

// TestLiveEnds: an error of the first read, and one of the terminal, end top.
func TestLiveEnds(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := api.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	draw := screen(func(string) error { return broken })
	if err := live(t.Context(), draw, &remote.Server{Client: c}, time.Hour); err == nil || errors.Is(err, broken) {
		t.Errorf("without a server: %v", err)
	}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"apps":[]}`))
	})
	if err := live(t.Context(), draw, &remote.Server{Client: c}, time.Hour); !errors.Is(err, broken) {
		t.Errorf("without a terminal: %v", err)
	}
}

// screen takes what is drawn at once.
type screen func(text string) error

func (s screen) Write(p []byte) (int, error) { return len(p), s(string(p)) }
