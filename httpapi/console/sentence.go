package console

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// What the API says of a schedule in plain words, in Chinese. engine/plan/describe.go
// and engine/plan/preview.go write it, clause by clause; here each clause has its
// like. What is not known stays English, whole: a test walks over all that the
// engine says, and fails where that happens.

// Sentence is what the API says of a schedule, in the visitor's language.
func (v *visit) Sentence(english string) string {
	if english == "" {
		return ""
	}
	if v.Lang == "zh" {
		if zh, ok := chineseSentence(english); ok {
			return zh + "。"
		}
	}
	return english + "."
}

// Warning is what the API warns of, in the visitor's language.
func (v *visit) Warning(english string) string {
	if v.Lang != "zh" {
		return english
	}
	for _, w := range chineseWarnings {
		if w.english.MatchString(english) {
			return w.english.ReplaceAllString(english, w.chinese)
		}
	}
	return english
}

// chineseSentence puts a sentence together from its clauses. The parts of a time
// of day come the other way round: the hour first.
func chineseSentence(english string) (string, bool) {
	var parts, times []string
	flush := func() {
		if times != nil {
			slices.Reverse(times)
			parts, times = append(parts, strings.Join(times, "")), nil
		}
	}
	for rest := english; rest != ""; {
		c, m := nextClause(rest)
		if m == nil {
			return "", false
		}
		text := strings.TrimRight(rest[:m[1]], ", ")
		zh := c.english.ReplaceAllString(text, c.chinese)
		if c.zone {
			if _, err := time.LoadLocation(text); err != nil {
				return "", false
			}
		} else {
			zh = chineseNames.Replace(zh)
		}
		if c.time {
			times = append(times, zh)
		} else {
			flush()
			parts = append(parts, zh)
		}
		rest = rest[m[1]:]
	}
	flush()
	return strings.Join(parts, "，"), true
}

// clause is a part of a sentence.
type clause struct {
	english    *regexp.Regexp
	chinese    string
	time, zone bool
}

func nextClause(rest string) (*clause, []int) {
	for i := range clauses {
		if m := clauses[i].english.FindStringIndex(rest); m != nil {
			return &clauses[i], m
		}
	}
	return nil, nil
}

var clauses = func() []clause {
	list := func(item string) string { return "(" + item + "(?:(?:, | and | to )" + item + ")*)" }
	const instant, unit = `(\d{4}-\d\d-\d\dT[\d:.]+Z)`, `\d+ (?:days?|hours?|minutes?|seconds?|ms)`
	span, numbers := "("+unit+"(?: "+unit+")*)", list(`\d+`)
	weekdays := list("(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
	months := list("(?:January|February|March|April|May|June|July|August|September|October|November|December)")
	c := func(english, chinese string) clause {
		return clause{english: regexp.MustCompile("^(?i:" + english + ")(?:, | |$)"), chinese: chinese}
	}
	t := func(english, chinese string) clause { x := c(english, chinese); x.time = true; return x }
	zone := c(`([A-Za-z0-9_+/-]+)`, "$1")
	zone.zone = true
	return []clause{
		c("once, at once", "仅一次，立即"),
		c("once, at "+instant, "仅一次，$1"),
		c("once, "+span+" after it is accepted", "仅一次，接受后 $1"),
		c("at "+list(`\d\d:\d\d(?::\d\d)?`), "$1"),
		t("every second", "每秒"),
		t("every minute", "每分钟"),
		t("every "+span, "每 $1"),
		t("at seconds? "+numbers, "第 $1 秒"),
		t("at minutes? "+numbers, "第 $1 分"),
		t("of every minute", "每分钟"),
		t("of every hour", "每小时"),
		t(`of every (\d+)(?:nd|rd|th) hour from 00 on`, "从 00 点起每 $1 小时"),
		t("of the hours "+numbers, "$1 点"),
		c("every day", "每天"),
		c("on days? "+numbers+" of the month, and besides on each "+weekdays, "每月 $1 日，以及每逢$2"),
		c("on days? "+numbers+" of the month", "每月 $1 日"),
		c(weekdays, "$1"),
		c("in "+months, "$1"),
		c("from "+instant, "自 $1 起"),
		c("until "+instant, "至 $1 止"),
		c("once only", "仅一次"),
		c(`(\d+) times at most`, "最多 $1 次"),
		c("spread over up to "+span, "在最长 ${1}内分散"),
		zone,
	}
}()

var chineseNames = strings.NewReplacer(
	"Monday", "周一", "Tuesday", "周二", "Wednesday", "周三", "Thursday", "周四", "Friday", "周五", "Saturday", "周六", "Sunday", "周日",
	"January", "1 月", "February", "2 月", "March", "3 月", "April", "4 月", "May", "5 月", "June", "6 月",
	"July", "7 月", "August", "8 月", "September", "9 月", "October", "10 月", "November", "11 月", "December", "12 月",
	"days", "天", "day", "天", "hours", "小时", "hour", "小时", "minutes", "分钟", "minute", "分钟", "seconds", "秒", "second", "秒", "ms", "毫秒",
	", ", "、", " and ", "、", " to ", "至",
)

var chineseWarnings = func() (ws []struct {
	english *regexp.Regexp
	chinese string
},
) {
	const instant = `(\d{4}-\d\d-\d\dT[\d:.]+Z)`
	for english, chinese := range map[string]string{
		`(".*") has no due within the coming years: there is no such day`:                                 "$1 在未来数年内没有到期：没有这样的日子",
		"nothing is due from " + instant + " to " + instant:                                               "从 $1 到 $2 没有到期",
		"nothing is due until " + instant:                                                                 "到 $1 为止没有到期",
		"nothing is due until the year 9999":                                                              "到 9999 年为止没有到期",
		"it is due after the year 9999":                                                                   "到期晚于 9999 年",
		instant + ` is more than the misfire window of (\S+) ago`:                                         "$1 已超出误期窗口 $2",
		"it lies in the past: it fires at once, if it is within the misfire window":                       "已经过去：若在误期窗口内，则立即触发",
		"it ends at " + instant + `, after (\d+) more`:                                                    "于 $1 结束，还有 $2 次",
		`it is due (\d+) times a day`:                                                                     "每天到期 $1 次",
		"day of month and day of week are both given: it is due on days that match either":                "同时给出了日期与星期：符合其一的日子都会到期",
		"it is due in leap years only":                                                                    "只在闰年到期",
		"it is not due in months that have no such day":                                                   "没有这一天的月份不会到期",
		`the clock of (\S+) skips from (.+) to (\S+): what is due between is due once, right after it`:    "$1 的时钟从 $2 跳到 $3：其间的到期在跳变后立即触发一次",
		`the clock of (\S+) goes back from (.+) to (\S+): what is due between is due the first time only`: "$1 的时钟从 $2 退回 $3：其间的到期只算第一遍",
	} {
		ws = append(ws, struct {
			english *regexp.Regexp
			chinese string
		}{regexp.MustCompile("^" + english + "$"), chinese})
	}
	return ws
}()
