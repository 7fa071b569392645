package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// Sentence says what a schedule means. The API says it in English; in other languages it
// is put together from the clauses. stamp writes an instant.
func (l Language) Sentence(p *client.Preview, stamp func(time.Time) string) string {
	if l != Chinese {
		if p.Sentence == "" {
			return ""
		}
		return p.Sentence + "."
	}
	var days, clock, zone, rest string
	afterDays := false
	for i := range p.Clauses {
		c := &p.Clauses[i]
		switch c.Kind {
		case "months":
			days = "每年 " + chineseList(c.Values, " 月") + inMonths(days, len(c.Values))
		case "days":
			days, afterDays = "每月 "+chineseList(c.Values, " 日"), true
		case "weekdays":
			if afterDays {
				days += "和"
			}
			days += "每" + chineseWeekdays(c.Values)
		case "month_days":
			switch {
			case strings.HasPrefix(days, "每周"):
				days += "和每月"
			case days == "":
				days = "每月"
			default:
				days += "和"
			}
			days += chineseMonthDays(c.MonthDays)
		case "every_day":
			days = "每天"
		case "zone":
			zone = "（" + c.Text + "）"
		case "times", "clock", "every", "once_at", "once_after", "never":
			clock = chineseClock(c, stamp)
			if c.Kind == "clock" && c.Hours.Every != 1 && !namesDays(p.Clauses) {
				days = "每天"
			}
		default:
			rest += "，" + chineseBound(c, stamp)
		}
	}
	if clock == "" && days == "" {
		return ""
	}
	if days != "" {
		days += " "
	}
	return days + clock + zone + rest + "。"
}

// namesDays reports whether one of the clauses is of days.
func namesDays(clauses []client.Clause) bool {
	return slices.ContainsFunc(clauses, func(c client.Clause) bool {
		return slices.Contains([]string{"days", "weekdays", "month_days", "every_day"}, c.Kind)
	})
}

// chineseMonthDays names days whose date depends on the month.
func chineseMonthDays(days []client.MonthDay) string {
	var parts []string
	for _, d := range days {
		switch d.Kind {
		case "before_last":
			if d.N == 0 {
				parts = append(parts, "最后一天")
			} else {
				parts = append(parts, fmt.Sprintf("倒数第 %d 天", d.N+1))
			}
		case "nearest":
			parts = append(parts, fmt.Sprintf("最接近 %d 日的工作日", d.N))
		case "last_weekday":
			parts = append(parts, "最后一个工作日")
		case "nth":
			parts = append(parts, fmt.Sprintf("第 %d 个%s", d.N, chineseWeekdays([]int{d.Weekday})))
		case "last_of":
			parts = append(parts, "最后一个"+chineseWeekdays([]int{d.Weekday}))
		}
	}
	return strings.Join(parts, "、")
}

// inMonths puts days behind the months of a year, which are written first.
func inMonths(days string, months int) string {
	of, ofMonth := strings.CutPrefix(days, "每月")
	switch {
	case ofMonth && months == 1:
		return of
	case ofMonth:
		return "的" + of
	case days == "" || days == "每天":
		return days
	}
	return "，" + days
}

// chineseClock says when on a day, or at what interval.
func chineseClock(c *client.Clause, stamp func(time.Time) string) string {
	switch c.Kind {
	case "never":
		return "永不触发：" + c.Text
	case "once_at":
		return "仅一次：" + stamp(c.At)
	case "once_after":
		if c.LengthMS == 0 {
			return "仅一次：立即"
		}
		return "仅一次：接受后 " + chineseSpan(c.LengthMS)
	case "every":
		return "每 " + chineseSpan(c.LengthMS)
	case "times":
		return strings.Join(c.Times, "、")
	}
	return chineseHours(c.Hours) + chineseMinutes(c) + chineseSeconds(c)
}

// mostHours is how many hours of a step are listed one by one.
const mostHours = 4

// chineseHours names the hours. "每 6 小时，每 10 分钟" would name two intervals, so a step
// of hours is written as hours: "0、6、12、18 点", or
// "0、2、…、22 点" if there are more.
func chineseHours(h client.Units) string {
	switch h.Every {
	case 0:
		return chineseList(h.Values, " 点")
	case 1:
		return ""
	}
	var hours []string
	for hour := 0; hour < 24; hour += h.Every {
		hours = append(hours, strconv.Itoa(hour))
	}
	if len(hours) > mostHours {
		hours = append(hours[:2], "…", hours[len(hours)-1])
	}
	return strings.Join(hours, "、") + " 点"
}

func chineseMinutes(c *client.Clause) string {
	m := c.Minutes
	switch {
	case m.Every == 1 && (!perSecond(c) || c.Seconds.Every == 0):
		return "每分钟"
	case m.Every > 1 && perSecond(c):
		return fmt.Sprintf("每 %d 分钟的首分钟", m.Every)
	case m.Every > 1:
		return fmt.Sprintf("每 %d 分钟", m.Every)
	case onlyZero(m) && !perSecond(c) && c.Hours.Every == 1:
		return "每小时整点"
	case onlyZero(m) && !perSecond(c) && c.Hours.Every > 1:
		return "整"
	case m.Every == 0 && c.Hours.Every == 1:
		return "每小时第 " + chineseList(m.Values, " 分")
	case m.Every == 0:
		return "第 " + chineseList(m.Values, " 分")
	}
	return ""
}

func chineseSeconds(c *client.Clause) string {
	within := ""
	if c.Minutes.Every != 1 {
		within = "内"
	}
	switch s := c.Seconds; {
	case s.Every == 1:
		return within + "每秒"
	case s.Every > 1:
		return within + fmt.Sprintf("每 %d 秒", s.Every)
	case perSecond(c):
		return "第 " + chineseList(s.Values, " 秒")
	}
	return ""
}

// perSecond reports whether a clause names seconds other than 0.
func perSecond(c *client.Clause) bool {
	return !onlyZero(c.Seconds)
}

func onlyZero(u client.Units) bool { return u.Every == 0 && len(u.Values) == 1 && u.Values[0] == 0 }

// chineseBound says what limits a schedule.
func chineseBound(c *client.Clause, stamp func(time.Time) string) string {
	switch c.Kind {
	case "from":
		return "自 " + stamp(c.At) + " 起"
	case "until":
		return "至 " + stamp(c.At) + " 止"
	case "at_most":
		if c.Count == 1 {
			return "仅一次"
		}
		return fmt.Sprintf("最多 %d 次", c.Count)
	case "spread":
		return "随机推后最多 " + chineseSpan(c.LengthMS)
	}
	return c.Text
}

// chineseList writes ascending numbers with their unit: "1、2、5 至 9 日".
func chineseList(values []int, unit string) string {
	return runs(values, strconv.Itoa) + unit
}

func chineseWeekdays(values []int) string {
	return runs(values, func(d int) string { return "周" + [...]string{"日", "一", "二", "三", "四", "五", "六"}[d%7] })
}

// runs lists ascending numbers; three and more that follow each other are a range.
func runs(values []int, name func(int) string) string {
	var parts []string
	for i := 0; i < len(values); i++ {
		end := i
		for end+1 < len(values) && values[end+1] == values[end]+1 {
			end++
		}
		if end < i+2 {
			parts = append(parts, name(values[i]))
			continue
		}
		to := name(values[end])
		if to[0] <= '9' { // between a number and a Chinese character stands a space
			to = " 至 " + to
		} else {
			to = "至" + to
		}
		parts = append(parts, name(values[i])+to)
		i = end
	}
	return strings.Join(parts, "、")
}

// chineseSpan writes a duration.
func chineseSpan(ms int64) string {
	var parts []string
	for _, u := range [...]struct {
		name string
		ms   int64
	}{{"天", 86_400_000}, {"小时", 3_600_000}, {"分钟", 60_000}, {"秒", 1000}, {"毫秒", 1}} {
		if n := ms / u.ms; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
		}
		ms %= u.ms
	}
	return strings.Join(parts, " ")
}

// Warning is what the API warns of about a schedule. A code that is not known here stays
// as the API wrote it.
func (l Language) Warning(w client.Warning, stamp func(time.Time) string) string {
	if l != Chinese {
		return w.Detail
	}
	switch w.Code {
	case "never_fires":
		return chineseNever(w, stamp)
	case "overdue":
		return "时间已过：若未超出错过触发的时限，将立即触发"
	case "ends_soon":
		return fmt.Sprintf("将于 %s 结束，还会到期 %d 次", stamp(w.At), w.Count)
	case "very_dense":
		return "每天到期 " + Grouped(w.Count) + " 次"
	case "day_or_weekday":
		return "同时指定了日期和星期：满足任意一个就会到期"
	case "leap_day":
		return "只在闰年到期"
	case "short_months":
		return "没有这一天的月份不会到期"
	case "dst_gap":
		return fmt.Sprintf("%s 的时钟将从 %s 跳到 %s：其间的到期在跳变后立即触发一次", w.Zone, w.ClockBefore, timeOf(w.ClockAfter))
	case "dst_pause":
		return fmt.Sprintf("%s 的时钟将从 %s 跳到 %s：其间的到期不会触发，间隔变长", w.Zone, w.ClockBefore, timeOf(w.ClockAfter))
	case "dst_repeat":
		return fmt.Sprintf("%s 的时钟将从 %s 拨回 %s：其间的到期会再触发一次", w.Zone, w.ClockBefore, timeOf(w.ClockAfter))
	case "time_zone_unused":
		return "时区只对 cron 表达式有效：时刻、延时和间隔没有时区"
	case "clock_behind":
		return "时钟被回拨：已有的定时器暂不调用，直到时钟走到回拨之前的时间。如果错的是回拨之前的时间，请运行 xtimer clock reset"
	case "flow_undefined":
		return "流控键 " + w.Flow + " 没有限制：设置限制之前，它的调用不受限制"
	case "secret_missing":
		return "应用没有密钥 " + w.Secret + "：设置密钥之前，定时器不会发出调用"
	case "targets_late":
		return "有的目标响应太慢或没有响应，对它们的调用已经晚了一分钟以上"
	case "dst_fold":
		return fmt.Sprintf("%s 的时钟将从 %s 拨回 %s：其间的到期只在第一遍触发", w.Zone, w.ClockBefore, timeOf(w.ClockAfter))
	}
	return w.Detail
}

// chineseNever says why a schedule is never due.
func chineseNever(w client.Warning, stamp func(time.Time) string) string {
	switch w.Reason {
	case "unsatisfiable_cron":
		return "未来数年内不会到期：不存在这样的日期"
	case "never_due":
		if w.At.IsZero() {
			return "到 9999 年为止不会到期"
		}
		return "到 " + stamp(w.At) + " 为止不会到期"
	case "too_far":
		return "到期时间晚于 9999 年"
	case "at_too_old":
		return "时间过去太久，已超出错过触发的时限"
	}
	return w.Detail
}

// timeOf is the time of day of what a clock shows.
func timeOf(clock string) string {
	_, at, _ := strings.Cut(clock, " ")
	return at
}
