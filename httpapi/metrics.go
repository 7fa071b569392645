package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// counters is what the server counts of itself.
type counters struct {
	set          *metrics.Set
	seconds      *metrics.PrometheusHistogram
	unrouted     [6]*metrics.Counter
	panics       *metrics.Counter
	acceptErrors *metrics.Counter
	refused      *metrics.Counter
	dropped      *metrics.Counter
	forwarded    struct{ answered, moved, failed *metrics.Counter } // requests made at other nodes, by what came of them
	streams      atomic.Int64
	open         func() float64 // of connections; written before serving begins
}

func (c *counters) init(s *Server) {
	// The library writes its HELP and TYPE lines for the whole process or not
	// at all.
	metrics.ExposeMetadata(true)
	c.set = metrics.NewSet()
	c.seconds = c.set.NewPrometheusHistogramExt("xtimer_http_request_seconds",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10})
	classes := [...]string{2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}
	count := func(route string, to *[6]*metrics.Counter) {
		for i, class := range classes {
			if class != "" {
				to[i] = c.set.NewCounter(`xtimer_http_requests_total{route="` + route + `",class="` + class + `"}`)
			}
		}
	}
	for i := range s.routes {
		count(s.routes[i].method+" "+s.routes[i].path, &s.routes[i].answers)
	}
	count("none", &c.unrouted)
	c.panics = c.set.NewCounter("xtimer_http_panics_total")
	c.acceptErrors = c.set.NewCounter("xtimer_http_accept_errors_total")
	c.refused = c.set.NewCounter("xtimer_http_connections_refused_total")
	c.dropped = c.set.NewCounter("xtimer_stream_dropped_total")
	c.forwarded.answered = c.set.NewCounter(`xtimer_forwarded_total{result="answered"}`)
	c.forwarded.moved = c.set.NewCounter(`xtimer_forwarded_total{result="moved"}`)
	c.forwarded.failed = c.set.NewCounter(`xtimer_forwarded_total{result="failed"}`)
	c.open = func() float64 { return 0 }
	c.set.NewGauge("xtimer_http_connections", func() float64 { return c.open() })
	c.set.NewGauge("xtimer_streams", func() float64 { return float64(c.streams.Load()) })
}

// count counts one answer; rt is nil when no route was found.
func (c *counters) count(rt *route, status int, took time.Duration) {
	to := &c.unrouted
	if rt != nil {
		to = &rt.answers
	}
	if n := to[min(status/100, 5)]; n != nil {
		n.Inc()
	}
	c.seconds.Update(took.Seconds())
}

// getMetrics is GET /metrics.
func (s *Server) getMetrics(*request) (reply, error) {
	var b bytes.Buffer
	s.stats.set.WritePrometheus(&b)
	if s.cfg.Metrics != nil {
		s.cfg.Metrics(&b)
	}
	metrics.WriteProcessMetrics(&b)
	metrics.WriteFDMetrics(&b)
	var out bytes.Buffer
	explain(&out, &b)
	return reply{body: rendered(out.Bytes()), kind: "text/plain; version=0.0.4; charset=utf-8"}, nil
}

// explain gives every metric the text of the help table, for the library
// writes HELP lines without any. Of the library's own families it leaves out
// those that the table does not name: some have a wrong type.
func explain(out *bytes.Buffer, in io.Reader) {
	leaveOut := false
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, _, _ := strings.Cut(rest, " ")
			text := help[name]
			leaveOut = text == "" && (strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_"))
			line = "# HELP " + name + " " + text
		}
		if !leaveOut {
			out.WriteString(line)
			out.WriteByte('\n')
		}
	}
}

// help describes each metric. A metric of the go_ and process_ families is
// exposed only if this table describes it. For all other metrics, a test compares
// this table with the metrics that are exposed.
var help = map[string]string{
	"xtimer_attempts_total":         "HTTP calls made for tasks, by status class of the response; none means no response.",
	"xtimer_audit_violations_total": "Timers that the auditor found misplaced and corrected, and stored timers and pending tasks that cannot be read or planned; each is a bug.",
	"xtimer_call_panics_total":      "Calls that panicked; each is a bug.",
	"xtimer_verify_findings_total":  "Dues about which a verification on this server found a fault; must stay 0.",
	"xtimer_calls_in_flight":        "HTTP calls in flight.",
	"xtimer_clock_behind_seconds":   "Seconds by which the clock is behind the last finished due, if more than a minute: existing timers are not called for this time, see xtimer clock reset.",
	"xtimer_calls_limit":            "Limit of HTTP calls in flight: --max-calls, or less while memory is full.",
	"xtimer_clock_steps_total":      "Steps of the wall clock that were detected.",
	"xtimer_fired_early_total":      "Attempts sent before their due; must stay 0.",
	"xtimer_fires_total":            "Tasks that got a final status, by that status, whether or not they were called; a task counts once, whatever the number of its attempts.",
	"xtimer_breakers_open":          "Flow keys and targets whose breaker holds their calls now, those of which one call is tried included.",
	"xtimer_held_tasks":             "Tasks in memory that are held now: by a pause, a quota, the limit of a flow key, a cooldown or a breaker.",
	"xtimer_history_left_out_total": "Successes not recorded in history because the disk was nearly full.",
	"xtimer_hold_seconds":           "Time for which tasks were held before an attempt, by what held them for longest.",
	"xtimer_quota_refusals_total":   "Creates and changes of timers that the quota of an app refused.",
	"xtimer_lateness_seconds":       "Time from the due of a task until its first attempt was written to the socket, without the time for which it was held.",
	"xtimer_migrator_lag_seconds":   "Time by which the loading of coming dues is behind.",
	"xtimer_ownership_age_seconds":  "With MySQL: seconds since MySQL last answered that the timers are this server's.",
	"xtimer_redelivered_total":      "Attempts that may already have been made, by why: a start of the process, a takeover of a dead node's shard, or a handover by a living one.",
	"xtimer_settle_backlog":         "Results not yet stored in the cold tier.",
	"xtimer_settle_seconds":         "Duration of a settle, which stores results and progress in the cold tier.",
	"xtimer_targets_limited":        "Targets whose limit of calls in flight makes tasks wait, or was lowered by timeouts.",
	"xtimer_tasks_overdue":          "Tasks that are due and wait to be called.",
	"xtimer_tier_up":                "1 while the tier is available, else 0.",
	"xtimer_timers":                 "Timers, by stored status.",
	"xtimer_timers_created_total":   "Timers created since the start, including changed schedules.",
	"xtimer_wal_entries":            "Records in the journal that are not discarded yet.",
	"xtimer_wal_sync_seconds":       "Duration of a commit of the journal.",
	"xtimer_wal_unsynced":           "Records of the journal not yet durable.",
	"xtimer_warm_entries":           "Entries in the warm tier.",
	"xtimer_wheel_tasks":            "Timers and retries in the wheel.",

	"xtimer_alert_queue":                    "Messages of alerts that wait for their channels.",
	"xtimer_alert_overflow_total":           "Failed tasks that came faster than the alerter took them; they are judged later, and none is lost.",
	"xtimer_alerts_total":                   "Messages of alerts, by the kind of their channel and what came of them.",
	"xtimer_incidents":                      "Open incidents of this server's alerts, by severity.",
	"xtimer_lease_age_seconds":              "In a cluster: how long ago the last beat began that the database confirmed; the node calls nothing while it is above two thirds of --lease.",
	"xtimer_clock_offset_seconds":           "In a cluster: by how much the clock of this node is ahead of the database's.",
	"xtimer_shards_owned":                   "In a cluster: the shards of this node, of 256.",
	"xtimer_quiet_seconds_total":            "In a cluster: time in which this node could make no call, because the database confirmed no beat or because of its clock.",
	"xtimer_takeovers_total":                "In a cluster: shards that this node took: at a start, by a handover, from a node that was dead (takeover), or from one that an administrator ended (eviction).",
	"xtimer_handover_seconds":               "In a cluster: time for which no node called for shards that this node handed over, until the next owner could take them.",
	"xtimer_mirror_lag_seconds":             "In a cluster: how long the oldest result waits that is not copied to Redis yet.",
	"xtimer_forwarded_total":                "In a cluster: requests that this server made at another node, for its clients: answered, moved (that node did not have the timer any more) or failed.",
	"xtimer_http_accept_errors_total":       "Temporary errors of accept, such as a lack of file descriptors.",
	"xtimer_http_connections":               "Connections open to the API.",
	"xtimer_http_connections_refused_total": "Connections refused because a limit was reached.",
	"xtimer_http_panics_total":              "Handlers that panicked; each is a bug.",
	"xtimer_http_request_seconds":           "Time from reading a request until its response is rendered.",
	"xtimer_http_requests_total":            "Responses to requests, by route and status class.",
	"xtimer_stream_dropped_total":           "Tasks that event streams could not send, because the reader was too slow or history did not have them.",
	"xtimer_streams":                        "Open event streams.",

	"go_gc_cpu_seconds_total":         "CPU time that the garbage collector used, estimated.",
	"go_gc_duration_seconds":          "Pauses of the garbage collector.",
	"go_gomaxprocs":                   "Threads that may run Go code at once.",
	"go_goroutines":                   "Goroutines.",
	"go_info":                         "Version of Go.",
	"go_memlimit_bytes":               "The soft memory limit, GOMEMLIMIT.",
	"go_memstats_alloc_bytes":         "Heap in use.",
	"go_memstats_alloc_bytes_total":   "Heap ever allocated.",
	"go_memstats_heap_idle_bytes":     "Heap spans not in use.",
	"go_memstats_heap_inuse_bytes":    "Heap spans in use.",
	"go_memstats_heap_objects":        "Objects on the heap.",
	"go_memstats_heap_released_bytes": "Heap returned to the system.",
	"go_memstats_next_gc_bytes":       "Heap size at which the next collection starts.",
	"go_memstats_stack_inuse_bytes":   "Stacks in use.",
	"go_memstats_sys_bytes":           "Memory obtained from the system.",
	"go_mutex_wait_seconds_total":     "Time that goroutines waited for locks.",
	"go_sched_latencies_seconds":      "Time that goroutines waited to run after they became runnable.",
	"go_threads":                      "Operating system threads.",
	"process_cpu_seconds_total":       "CPU time used.",
	"process_major_pagefaults_total":  "Page faults that needed the disk.",
	"process_max_fds":                 "Limit of open file descriptors.",
	"process_num_threads":             "Threads of the process.",
	"process_open_fds":                "File descriptors open.",
	"process_resident_memory_bytes":   "Resident memory.",
	"process_start_time_seconds":      "Start time of the process, as Unix time.",
	"process_virtual_memory_bytes":    "Address space.",
}
