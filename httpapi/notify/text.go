package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"xtimer/engine/alert"
)

// incident is an incident in the JSON of a webhook.
type incident struct {
	ID       string   `json:"id"`
	Rule     string   `json:"rule"`
	App      string   `json:"app"`
	By       string   `json:"by"`
	Severity string   `json:"severity"`
	On       []string `json:"on"`
	Opened   string   `json:"opened"`
	Closed   string   `json:"closed,omitempty"`
	Why      string   `json:"why,omitempty"`         // it was closed
	Duration *int64   `json:"duration_ms,omitempty"` // of one that is closed
	Count    int64    `json:"count"`
}

type task struct {
	Key    string `json:"key"`
	Name   string `json:"name"`
	Due    string `json:"due"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	Code   int    `json:"code,omitempty"`
	Class  string `json:"error_class,omitempty"`
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func incidentOf(i *alert.Incident) incident {
	out := incident{i.ID, i.Rule, i.App, i.By, i.Severity, i.On, instant(i.Opened), "", "", nil, i.Count}
	if i.Closed != 0 {
		out.Closed, out.Why, out.Duration = instant(i.Closed), i.Why, new(i.Closed-i.Opened)
	}
	return out
}

// payload is the body of a webhook.
func payload(m *alert.Message) []byte {
	out := struct {
		Type      string     `json:"type"`
		ID        string     `json:"id"`
		Incident  *incident  `json:"incident,omitempty"`
		Tasks     []task     `json:"tasks,omitempty"`
		Count     int        `json:"count,omitempty"`
		Incidents []incident `json:"incidents,omitempty"`
		Link      string     `json:"link,omitempty"`
	}{Type: m.Type, ID: m.ID, Count: m.Count, Link: m.Link}
	if i := m.Incident; i != nil {
		one := incidentOf(i)
		out.Incident = &one
		for _, t := range i.Tasks {
			out.Tasks = append(out.Tasks, task{t.Key, t.Name, instant(t.Due), t.Status, t.Reason, t.Code, t.Class})
		}
	}
	for i := range m.Incidents {
		out.Incidents = append(out.Incidents, incidentOf(&m.Incidents[i]))
	}
	return marshal(out)
}

// words are the texts of a language: what happened, and the lines of a message.
type words struct{ opened, repeated, recovered, gone, digest, test, rule, failures, lasted, last string }

var languages = map[string]words{
	"en": {"failing", "still failing", "recovered", "closed: its timer or rule was deleted", "%d messages in the last minute", "a test of this channel", "rule", "failures", "lasted", "last"},
	"zh": {"出现失败", "仍在失败", "已恢复", "已关闭：定时器或规则已删除", "最近一分钟共 %d 条消息", "通道测试", "规则", "失败次数", "持续", "最近"},
}

// ofStates are the texts of what is no failure: by language and word.
var ofStates = map[string]map[string]string{
	"en": {
		"late": "calls are late", "backlog": "tasks pile up", "breaker": "the breaker is open", "paused": "calls are paused", "quota": "the quota refuses timers", "tier": "a store is unavailable",
		"clock": "the clock was set back", "disk": "the disk is full", "memory": "the memory is full", "early": "a call was early", "audit": "the audit found a fault",
		"verify": "a verification found a fault", "channel": "an alert channel fails",
	},
	"zh": {
		"late": "调用延迟", "backlog": "任务积压", "breaker": "熔断器打开", "paused": "调用已暂停", "quota": "配额拒绝创建定时器", "tier": "存储不可用",
		"clock": "时钟被回拨", "disk": "磁盘已满", "memory": "内存已满", "early": "调用过早", "audit": "审计发现问题",
		"verify": "核对发现问题", "channel": "告警通道失败",
	},
}

func title(d *alert.Delivery) string {
	w, m := languages[d.Channel.Lang], &d.Message
	what := map[string]string{"incident.opened": w.opened, "incident.repeated": w.repeated, "incident.recovered": w.recovered}[m.Type]
	if i := m.Incident; i != nil && len(i.On) == 1 && m.Type != "incident.recovered" {
		what = cmp.Or(ofStates[d.Channel.Lang][i.On[0]], what)
	}
	if m.Type == "incident.recovered" && m.Incident != nil && m.Incident.Why == "gone" {
		what = w.gone
	}
	switch {
	case m.Type == "digest":
		return "xtimer: " + fmt.Sprintf(w.digest, m.Count)
	case m.Incident == nil:
		return "xtimer: " + w.test
	}
	return "xtimer: " + plain(m.Incident.App) + "/" + plain(m.Incident.By) + " " + what
}

// text is a message for people, of so many bytes at most. A channel without mentions has nil. The
// link and the mentions are whole, as far as they fit into half of that.
func text(d *alert.Delivery, mention func(who string) string, most int) string {
	end := ""
	if link := d.Message.Link; link != "" && len(link) < most/2 {
		end = "\n" + link
	}
	for _, who := range mentioned(d, mention) {
		if len(end)+len(" ")+len(who) <= most/2 {
			end += " " + who
		}
	}
	return cut(strings.Join(append([]string{title(d)}, details(d)...), "\n"), most-len(end)) + end
}

// mentioned are the mentions of a message: its end mentions nobody.
func mentioned(d *alert.Delivery, mention func(who string) string) (all []string) {
	if d.Message.Type == "incident.recovered" || mention == nil {
		return nil
	}
	for _, who := range d.Channel.Mention {
		all = append(all, mention(who))
	}
	return all
}

// details are the lines below the title. Names are what users wrote, and steer nothing.
func details(d *alert.Delivery) (lines []string) {
	w, m := languages[d.Channel.Lang], &d.Message
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if i := m.Incident; i != nil {
		add("%s: %s (%s)", w.rule, plain(i.Rule), i.Severity)
		if i.State == "" {
			add("%s: %d", w.failures, i.Count)
		}
		if i.Closed != 0 {
			add("%s: %v", w.lasted, (time.Duration(i.Closed-i.Opened) * time.Millisecond).Round(time.Second))
		}
		if n := len(i.Tasks); n > 0 {
			add("%s: %s", w.last, last(&i.Tasks[n-1]))
		}
	}
	for i := range m.Incidents {
		one := &m.Incidents[i]
		add("- %s/%s: %d", plain(one.App), plain(one.By), one.Count)
	}
	if more := m.Count - len(m.Incidents); m.Type == "digest" && more > 0 {
		add("+ %d", more)
	}
	return lines
}

// last is the last task of an incident.
func last(t *alert.Task) string {
	s := instant(t.Due) + " " + t.Status
	if t.Code != 0 {
		s += fmt.Sprintf(" %d", t.Code)
	}
	if why := cmp.Or(t.Class, t.Reason); why != "" {
		s += " " + why
	}
	return s
}

// plain is a user's text without what would mean something to a channel: markup, mentions,
// links, line breaks, a change of direction; 100 characters of it at most.
func plain(s string) string {
	n := 0
	s = strings.ReplaceAll(s, "://", "：//")
	return strings.Map(func(c rune) rune {
		if n++; n > 100 || c == utf8.RuneError || unicode.Is(unicode.Bidi_Control, c) {
			return -1
		}
		if i := strings.IndexRune("<>@`*[]()#~|&!", c); i >= 0 {
			return []rune("‹›＠ˋ∗［］（）＃～｜＆！")[slices.Index([]rune("<>@`*[]()#~|&!"), c)]
		}
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, s)
}

// cut cuts a text to so many bytes, between two characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most -= len("…"); most > 0 && !utf8.RuneStart(s[most]); most-- {
	}
	return s[:most] + "…"
}

func wecomMention(who string) string {
	if who == "all" {
		return "<@all>"
	}
	return "<@" + plain(who) + ">"
}

func atMention(who string) string { return "@" + plain(who) }

func feishuMention(who string) string {
	return `<at user_id="` + plain(who) + `"></at>`
}

// atOf says whom DingTalk is to mention, besides in the text.
func atOf(mention []string) map[string]any {
	var mobiles []string
	for _, who := range mention {
		if who != "all" {
			mobiles = append(mobiles, who)
		}
	}
	return map[string]any{"isAtAll": slices.Contains(mention, "all"), "atMobiles": mobiles}
}
