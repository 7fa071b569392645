package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

func TestWaterfall(t *testing.T) {
	due := time.UnixMilli(1_800_000_000_000).UTC()
	late := 0.25
	task := &client.Task{Due: due, LatenessMS: &late, Attempts: []client.Attempt{
		{N: 1, Started: due, TookMS: 99.75, Code: 500, ErrorClass: "status"},
		{N: 2, Started: due.Add(900 * time.Millisecond), TookMS: 100, ErrorClass: "timeout"},
	}}
	got := waterfall(task)
	a, b := got[0], got[1]
	if a.WaitX != 0 || a.CallX != 0.02 || a.CW != 9.97 || a.Label != "500" || !a.Bad {
		t.Errorf("%+v", a)
	}
	if b.WaitX != 10 || b.W != 80 || b.CallX != 90 || b.CW != 10 || b.Label != "timeout" {
		t.Errorf("%+v", b)
	}
	if len(waterfall(&client.Task{})) != 0 {
		t.Error("a task without an attempt falls")
	}
}

// TestPhases: the stretches of an attempt lie end to end, whole in the picture.
func TestPhases(t *testing.T) {
	v := &visit{Language: "zh"}
	got := v.phases(&client.Phases{Wheel: 100, Queue: 100, Send: 200, FirstByte: 500, Read: 100})
	want := []phase{
		{Name: "时间轮中", US: 100, X: 0, W: 10, Wait: true},
		{Name: "排队中", US: 100, X: 10, W: 10, Wait: true},
		{Name: "建立连接", Kept: true},
		{Name: "发送请求", US: 200, X: 20, W: 20},
		{Name: "等待首字节", US: 500, X: 40, W: 50},
		{Name: "读取响应", US: 100, X: 90, W: 10},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	got = v.phases(&client.Phases{Wheel: 1, Dial: 1_000_000})
	if len(got) != 3 || got[0].W != 0.4 || got[2].Kept || got[2].X+got[2].W > 100 {
		t.Errorf("a target that is not there: %+v", got)
	}
	if got := append(v.phases(nil), v.phases(&client.Phases{})...); len(got) != 0 {
		t.Errorf("what nobody knows is shown: %+v", got)
	}
}

// TestTaskPage shows them, without a script.
func TestTaskPage(t *testing.T) {
	n := serve(t)
	task := n.run(n.timer("shop", "stock", "/bad").ID)
	page := n.visitor().get("/tasks/" + task.Key).body
	for _, want := range []string{"TLS handshake", "1\u202f200 µs", "kept connection", "In the wheel", "Waiting for the first byte"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a task lacks %q", want)
		}
	}
	if got := strings.Count(page, `<table class="phases">`); got != 2 {
		t.Errorf("%d of 2 attempts have their phases", got)
	}
}
