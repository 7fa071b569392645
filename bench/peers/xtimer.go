package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// xtimerBinary is the real program: PEERS_XTIMER, or built for the run.
var xtimerBinary = os.Getenv("PEERS_XTIMER")

func buildXtimer(dir string) error {
	if xtimerBinary != "" {
		return nil
	}
	xtimerBinary = filepath.Join(dir, "xtimer")
	cmd := exec.Command("go", "build", "-o", xtimerBinary, "./cmd/xtimer")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build xtimer: %w\n%s", err, out)
	}
	return nil
}

// xtimer is "xtimer serve" over the embedded tiers. It is added to over its API
// from this process.
type xtimer struct {
	dir, receiver string
	addr          string
	cmd           *exec.Cmd
	client        *fasthttp.HostClient
}

func (x *xtimer) start() error {
	if x.addr == "" {
		port, err := freePort()
		if err != nil {
			return err
		}
		x.addr = net.JoinHostPort("127.0.0.1", port)
		x.client = &fasthttp.HostClient{Addr: x.addr, MaxConns: 64, MaxResponseBodySize: 64 << 20, MaxIdemponentCallAttempts: 1}
	}
	x.cmd = exec.Command(xtimerBinary, "serve", "--listen", x.addr, "--data-dir", filepath.Join(x.dir, "data"))
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := x.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		code, _, err := x.client.Get(nil, "http://"+x.addr+"/readyz")
		if err == nil && code == fasthttp.StatusOK {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("xtimer is not ready within a minute: %d %w", code, err)
		}
	}
}

func (x *xtimer) kill() { killed(x.cmd) }

func (x *xtimer) pid() int { return x.cmd.Process.Pid }

// heard has nothing to tell: xtimer has no handler but the call.
func (x *xtimer) heard() ([]arrival, error) { return nil, nil }

// add creates one timer a request on 64 connections, or a thousand on 4.
func (x *xtimer) add(o order) (orderReport, error) {
	step, conns, path, kind, want := 1, 64, "/v1/timers", "application/json", fasthttp.StatusCreated
	if o.Batch {
		step, conns, path, kind, want = batchSize, 4, "/v1/timers/batch", "application/x-ndjson", fasthttp.StatusOK
	}
	started := time.Now()
	added, err := share(o.Tasks.N, step, conns, started.Add(o.Within), func(from, to int) error {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(resp)
		var b bytes.Buffer
		for i := from; i < to; i++ {
			t := o.Tasks.at(i)
			fmt.Fprintf(&b, `{"app":"peers","name":"n%d","schedule":{"at":%d},"callback":{"url":%q,"headers":{%q:"%d",%q:"%d"}}}`+"\n",
				t.Number, t.Due, x.receiver, numberHeader, t.Number, dueHeader, t.Due)
		}
		req.SetRequestURI("http://" + x.addr + path)
		req.Header.SetMethod(fasthttp.MethodPost)
		req.Header.SetContentType(kind)
		req.SetBodyRaw(b.Bytes())
		if err := x.client.DoTimeout(req, resp, time.Minute); err != nil {
			return err
		}
		if resp.StatusCode() != want {
			return fmt.Errorf("xtimer answered %d %s", resp.StatusCode(), resp.Body())
		}
		if o.Batch {
			return allCreated(resp.Body(), to-from)
		}
		return nil
	})
	return orderReport{Added: added, Took: time.Since(started)}, err
}

func allCreated(body []byte, n int) error {
	var out struct {
		Results []struct {
			Status int
			Error  json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return err
	}
	if len(out.Results) != n {
		return fmt.Errorf("xtimer answered %d results for %d timers", len(out.Results), n)
	}
	for _, r := range out.Results {
		if r.Status != fasthttp.StatusCreated {
			return fmt.Errorf("xtimer refused a timer: %d %s", r.Status, r.Error)
		}
	}
	return nil
}

func xtimerVersion() string {
	out, err := exec.Command("git", "-C", filepath.Join("..", ".."), "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "of this folder"
	}
	return "commit " + string(bytes.TrimSpace(out))
}
