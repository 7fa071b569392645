package waterfall

import (
	"slices"
	"testing"
	"time"

	"xtimer/httpapi/client"
	"xtimer/httpapi/console/words"
)

func TestWaterfall(t *testing.T) {
	due := time.UnixMilli(1_800_000_000_000).UTC()
	late := 0.25
	task := &client.Task{Due: due, LatenessMS: &late, Attempts: []client.Attempt{
		{N: 1, Started: due, TookMS: 99.75, Code: 500, ErrorClass: "status"},
		{N: 2, Started: due.Add(900 * time.Millisecond), TookMS: 100, ErrorClass: "timeout"},
	}}
	got := Bars(task)
	a, b := got[0], got[1]
	if a.WaitX != 0 || a.CallX != 0.02 || a.CW != 9.97 || a.Label != "500" || !a.Bad {
		t.Errorf("%+v", a)
	}
	if b.WaitX != 10 || b.W != 80 || b.CallX != 90 || b.CW != 10 || b.Label != "timeout" {
		t.Errorf("%+v", b)
	}
	if len(Bars(&client.Task{})) != 0 {
		t.Error("a task without an attempt falls")
	}
}

// TestPhases: the stretches of an attempt lie end to end, whole in the picture.
func TestPhases(t *testing.T) {
	v := words.Chinese
	got := Phases(v, &client.Phases{Wheel: 100, Queue: 100, Send: 200, FirstByte: 500, Read: 100})
	want := []Phase{
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
	got = Phases(v, &client.Phases{Wheel: 1, Dial: 1_000_000})
	if len(got) != 3 || got[0].W != 0.4 || got[2].Kept || got[2].X+got[2].W > 100 {
		t.Errorf("a target that is not there: %+v", got)
	}
	if got := append(Phases(v, nil), Phases(v, &client.Phases{})...); len(got) != 0 {
		t.Errorf("what nobody knows is shown: %+v", got)
	}
}
