// Package words has the texts of the console in each of its languages.
//
// The pages are written in English. chinese.go has the Chinese of each of their texts,
// and a test finds those that are missing. sentence.go renders what the API says of a
// schedule. Details of errors stay as the API wrote them.
package words

import (
	"fmt"
	"strconv"
	"strings"
)

// Language is the language of a page.
type Language string

// The languages.
const (
	English Language = "en"
	Chinese Language = "zh"
)

// Parse reads the name of a language.
func Parse(name string) (l Language, ok bool) {
	l = Language(name)
	return l, l == English || l == Chinese
}

// Preferred is the language that an Accept-Language header prefers, or English.
func Preferred(accept string) Language {
	best, most := English, 0.0
	for l := range strings.SplitSeq(accept, ",") {
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
			best, most = Chinese, q
		case strings.HasPrefix(name, "en"):
			best, most = English, q
		}
	}
	return best
}

// Lang is the name of the language, as in Parse.
func (l Language) Lang() string { return string(l) }

// T is a text in the language, with its %s and %d filled in.
func (l Language) T(text string, args ...any) string {
	if l == Chinese {
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
func (l Language) N(one, many string, n int64) string {
	if n == 1 && l != Chinese {
		many = one
	}
	return l.T(many, Grouped(n))
}

// Word is a word of the API, like a status, in the language.
func (l Language) Word(word string) string {
	if l == Chinese {
		if t, ok := chineseWords[word]; ok {
			return t
		}
	}
	return strings.ReplaceAll(word, "_", " ")
}

// Reason translates the reason of a task. The reason of a held task is a word and a name; the name stays as it is.
func (l Language) Reason(reason string) string {
	word, name, held := strings.Cut(reason, " ")
	if !held {
		return l.Word(reason)
	}
	return l.Word(word) + " " + name
}

// Grouped writes a number with thin spaces between its thousands.
func Grouped[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// Known are all words of the API in the language, for scripts.
func (l Language) Known() map[string]string {
	m := make(map[string]string, len(chineseWords))
	for word := range chineseWords {
		m[word] = l.Word(word)
	}
	return m
}
