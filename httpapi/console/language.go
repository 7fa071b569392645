package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// The pages are written in English; chinese.go has for each of their texts what
// it is in Chinese, and a test that none is missing; sentence.go has it for what the
// API says of schedules. What else the API says (details of errors) stays as it is.

// languageOf is the visitor's choice, or the browser's, or English.
func languageOf(r *http.Request) string {
	if k, err := r.Cookie(languageCookie); err == nil && (k.Value == "en" || k.Value == "zh") {
		return k.Value
	}
	best, most := "en", 0.0
	for l := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		name, weight, _ := strings.Cut(strings.ToLower(strings.TrimSpace(l)), ";")
		q := 1.0
		if _, w, ok := strings.Cut(weight, "q="); ok {
			q, _ = strconv.ParseFloat(strings.TrimSpace(w), 64)
		}
		if q <= most {
			continue
		}
		switch {
		case strings.HasPrefix(name, "zh"):
			best, most = "zh", q
		case strings.HasPrefix(name, "en"):
			best, most = "en", q
		}
	}
	return best
}

// T is a text in the visitor's language, with its %s and %d filled in.
func (v *visit) T(text string, args ...any) string {
	if v.Lang == "zh" {
		if t, ok := chinese[text]; ok {
			text = t
		}
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// N is a text with a number, for one or for many; Chinese has one form for both.
func (v *visit) N(one, many string, n int64) string {
	if n == 1 && v.Lang != "zh" {
		many = one
	}
	return v.T(many, grouped(n))
}

// Word is a word of the API, like a status, in the visitor's language.
func (v *visit) Word(word string) string {
	if v.Lang == "zh" {
		if t, ok := chineseWords[word]; ok {
			return t
		}
	}
	return strings.ReplaceAll(word, "_", " ")
}
