package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// TestHolds: a task says for how long it was held, and by what.
func TestHolds(t *testing.T) {
	late := 1502.0
	page := fakeAPI(func(r *http.Request) (int, any) {
		if strings.HasPrefix(r.URL.Path, "/v1/tasks/") {
			return 200, client.Task{Key: "7_1", TimerID: "7", Status: client.Succeeded, HeldMS: 1500, LatenessMS: &late, Attempts: []client.Attempt{{N: 1, Batch: "b" + evil, BatchSize: 7, PhasesUS: &client.Phases{Wheel: 100, Hold: 1_500_000, Send: 20}}}, Holds: []client.Hold{{By: "flow", Name: "k" + evil, MS: 1500}}}
		}
		return 404, nil
	}).page("/tasks/7_1", "Accept-Language", "zh")
	for _, want := range []string{"流控 <code>k" + evil + "</code> 1.50 s", "不计被阻挡的时间：2.0 ms", "批量 b" + evil + "，任务数 7"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
}

// TestListOfHeldTasks: the list of tasks says what holds a task, and about when it is called.
func TestListOfHeldTasks(t *testing.T) {
	page := fakeAPI(func(r *http.Request) (int, any) {
		if r.URL.Path == "/v1/tasks" {
			return 200, client.TaskList{Tasks: []client.Task{{Key: "7_1", TimerID: "7", Status: client.Waiting, Reason: "flow k_1" + evil, HeldMS: 1500, NextAttempt: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}}}
		}
		return 404, nil
	}).page("/tasks", "Accept-Language", "zh")
	for _, want := range []string{"流控 k_1" + evil, "下次尝试 "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
}
