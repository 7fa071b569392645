package client_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine/scheduler"
	"xtimer/httpapi"
	"xtimer/httpapi/callback"
	"xtimer/httpapi/client"
	"xtimer/tier/memory"
	"xtimer/wal"
)

// startEngine opens and runs an engine on memory tiers until stop; its calls are
// real. The app "a" signs them with the secrets.
func startEngine(dir string, secrets ...string) (e *scheduler.Scheduler, stop func() error, err error) {
	log := slog.New(slog.DiscardHandler)
	call, err := callback.New(callback.Config{Secrets: map[string][]string{"a": secrets}})
	if err != nil {
		return nil, nil, err
	}
	e = scheduler.New(scheduler.Config{
		Cold: memory.NewCold(), Warm: memory.NewWarm(),
		Journal: wal.New(wal.Config{Dir: filepath.Join(dir, "journal"), Logger: log}),
		Caller:  call, Log: log, Metrics: metrics.NewSet(),
	})
	if err := e.Open(context.Background()); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return e, func() error {
		cancel()
		err := <-ended
		call.Close()
		return err
	}, nil
}

// startServer runs a server of e at that address until stop.
func startServer(e *scheduler.Scheduler, addr string, cfg httpapi.ServerConfig) (url string, stop func(), err error) {
	cfg.Log = slog.New(slog.DiscardHandler)
	s, err := httpapi.NewServer(e, cfg)
	if err != nil {
		return "", nil, err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended // an error only says that a reader did not leave in time
	})
	return "http://" + ln.Addr().String(), stop, nil
}

func newEngine(t testing.TB, secrets ...string) *scheduler.Scheduler {
	t.Helper()
	e, stop, err := startEngine(t.TempDir(), secrets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	until(t, func() bool { return e.Ready() == nil })
	return e
}

func serve(t testing.TB, e *scheduler.Scheduler, addr string, cfg httpapi.ServerConfig) (url string, stop func()) {
	t.Helper()
	url, stop, err := startServer(e, addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url, stop
}

// newClient is a client of a server of its own. Its transport may be watched.
func newClient(t testing.TB, options ...client.Option) *client.Client {
	t.Helper()
	url, _ := serve(t, newEngine(t), "127.0.0.1:0", httpapi.ServerConfig{Version: httpapi.Version{Version: "v1"}, BackupDir: t.TempDir()})
	return dial(t, url, options...)
}

func dial(t testing.TB, url string, options ...client.Option) *client.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections) // before the server stops
	options = append([]client.Option{client.WithHTTPClient(&http.Client{Transport: transport})}, options...)
	c, err := client.New(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// until waits for something that other goroutines do.
func until(t testing.TB, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come about within a minute")
		}
	}
}

// hourly is a timer that is due in an hour.
func hourly(name string) client.Definition {
	return client.Definition{
		App: "a", Name: name,
		Schedule: client.Schedule{Every: time.Hour}, Callback: client.Callback{URL: "http://127.0.0.1:1/"},
	}
}
