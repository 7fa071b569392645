// Package notify sends messages about incidents to the channels of alerts: webhooks, the
// robots of Slack, WeCom, DingTalk and Feishu, and mail servers.
package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"xtimer/engine/alert"
)

// Config of a Sender.
type Config struct {
	Version string // for User-Agent
	// Secret returns the value that a secret of an app has now.
	Secret func(app, name string) (string, bool)
	// Allowed returns an error for an address that may not be dialled; nil: all may be.
	Allowed func(address string) error
	// Forbids returns an error for a URL whose host is an address that may not be called; nil:
	// all may be. It is asked for what a proxy is to call.
	Forbids func(url string) error
}

// Sender sends messages, with a client of its own.
type Sender struct {
	cfg    Config
	client *http.Client
	mail   mailer
}

// patience is how long a channel may take to answer.
const patience = 15 * time.Second

// New returns a sender.
func New(cfg Config) *Sender {
	dial := &net.Dialer{Timeout: 5 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		if cfg.Allowed == nil {
			return nil
		}
		return cfg.Allowed(address)
	}}
	return &Sender{cfg: cfg, mail: mailer{dialer: dial}, client: &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{Proxy: proxyOf, DialContext: dial.DialContext, MaxIdleConns: 32, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 5 * time.Second},
	}}
}

// Send sends a message once.
func (s *Sender) Send(ctx context.Context, d *alert.Delivery) alert.Result {
	if d.Channel.Kind == "email" {
		values, missing := s.values(d.App, d.Channel.SMTP.Password)
		if missing != "" {
			return alert.Result{Error: "secret_missing", Secret: missing}
		}
		password := values[0]
		r := s.mail.send(ctx, d, password)
		if password != "" {
			r.Answer, r.Error = strings.ReplaceAll(r.Answer, password, "…"), strings.ReplaceAll(r.Error, password, "…")
		}
		return r
	}
	values, missing := s.values(d.App, d.Channel.URL, d.Channel.Secret, d.Channel.Proxy)
	if missing != "" {
		return alert.Result{Error: "secret_missing", Secret: missing}
	}
	to, secret, through := values[0], values[1], values[2]
	via, bad := s.proxy(through, to)
	if bad.Error != "" {
		return bad
	}
	now := time.Now()
	body, header := []byte(nil), http.Header{"Content-Type": {"application/json"}, "User-Agent": {"xtimer/" + s.cfg.Version}}
	switch d.Channel.Kind {
	case "webhook":
		body = payload(&d.Message)
		if err := signWebhook(header, secret, d.Message.ID, body, now); err != nil {
			return alert.Result{Final: true, Error: err.Error()}
		}
	case "slack":
		body = slackBody(d)
	case "wecom":
		body = marshal(map[string]any{"msgtype": "markdown", "markdown": map[string]any{"content": text(d, wecomMention, 4096)}})
	case "dingtalk":
		to = signDingTalk(to, secret, now)
		body = marshal(map[string]any{
			"msgtype": "markdown", "markdown": map[string]any{"title": title(d), "text": text(d, atMention, 16<<10)}, "at": atOf(d.Channel.Mention),
		})
	case "feishu":
		m := map[string]any{"msg_type": "text", "content": map[string]any{"text": text(d, feishuMention, 16<<10)}}
		if secret != "" {
			m["timestamp"], m["sign"] = strconv.FormatInt(now.Unix(), 10), signFeishu(secret, now)
		}
		body = marshal(m)
	}
	q, err := http.NewRequestWithContext(via.context(ctx), http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return alert.Result{Final: true, Error: "the URL is not valid"} // the error has the URL, which may be a secret
	}
	q.Header = header
	p, err := s.client.Do(q)
	if err != nil {
		return alert.Result{Error: via.without(hide(err, to))}
	}
	defer p.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(p.Body, mostRead)) // what came of it is judged
	r := judge(d.Channel.Kind, p, answer)
	answer = answer[:min(len(answer), 2*mostAnswer)]
	r.Status, r.Answer = p.StatusCode, cut(via.without(without(string(answer), to, secret)), mostAnswer)
	return r
}

// mostAnswer is how much of an answer is shown. As much again is looked at, so that what is shown
// does not end within a secret.
const mostAnswer = 1 << 10

// without is what a channel answered, without its URL and its secret, which it may repeat in
// whole or in parts.
func without(answer, to, secret string) string {
	answer = strings.ReplaceAll(answer, to, "the URL")
	if u, err := url.Parse(to); err == nil && len(u.RequestURI()) > 1 {
		answer = strings.ReplaceAll(answer, u.RequestURI(), "/…")
		parts := append(strings.Split(u.Path, "/"), strings.Split(u.EscapedPath(), "/")...)
		for _, values := range u.Query() {
			parts = append(parts, values...)
		}
		for _, part := range parts {
			if len(part) >= leastPart {
				answer = strings.ReplaceAll(answer, part, "…")
			}
		}
	}
	if secret != "" {
		answer = strings.ReplaceAll(answer, secret, "…")
	}
	return answer
}

// leastPart is the length from which a part of a URL may be a key.
const leastPart = 8

// values are those of some texts of a channel; missing is the name of the first secret of them that
// does not exist.
func (s *Sender) values(app string, texts ...alert.Text) (values []string, missing string) {
	for _, t := range texts {
		value, ok := t.Value, true
		if t.Secret != "" {
			value, ok = s.cfg.Secret(app, t.Secret)
		}
		if !ok {
			return nil, t.Secret
		}
		values = append(values, value)
	}
	return values, ""
}

// hide is the text of an error of a request, without the URL.
func hide(err error, to string) string {
	var u *url.Error
	if e, ok := err.(*url.Error); ok {
		u = e
		return strings.ReplaceAll(u.Err.Error(), to, "the URL")
	}
	return "the request failed"
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// signWebhook signs as Standard Webhooks has it, if there is a secret.
func signWebhook(h http.Header, secret, id string, body []byte, now time.Time) error {
	stamp := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	if secret == "" {
		return nil
	}
	coded, _ := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return fmt.Errorf("the secret is not whsec_ and base64")
	}
	h.Set("Webhook-Signature", "v1,"+sum(key, id+"."+stamp+"."+string(body)))
	return nil
}

// sum is the HMAC-SHA256 of a text, in base64.
func sum(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func signDingTalk(to, secret string, now time.Time) string {
	if secret == "" {
		return to
	}
	stamp := strconv.FormatInt(now.UnixMilli(), 10)
	return to + "&timestamp=" + stamp + "&sign=" + url.QueryEscape(sum([]byte(secret), stamp+"\n"+secret))
}

// signFeishu: the text to sign is the key, and what is signed is empty.
func signFeishu(secret string, now time.Time) string {
	return sum([]byte(strconv.FormatInt(now.Unix(), 10)+"\n"+secret), "")
}

// judge says what an answer means. The robots answer a refusal with 200, too.
func judge(kind string, p *http.Response, answer []byte) alert.Result {
	if p.StatusCode == http.StatusTooManyRequests || p.StatusCode == http.StatusRequestTimeout || p.StatusCode >= 500 {
		return alert.Result{Error: p.Status, After: min(max(retryAfter(p.Header.Get("Retry-After")), 0), 10*time.Minute)}
	}
	if p.StatusCode/100 != 2 {
		return alert.Result{Final: true, Error: p.Status}
	}
	switch kind {
	case "webhook":
		return alert.Result{Delivered: true}
	case "slack":
		if strings.TrimSpace(string(answer)) == "ok" {
			return alert.Result{Delivered: true}
		}
		return alert.Result{Final: true, Error: "the answer is not ok"}
	}
	code, ok := codeOf(kind, answer)
	switch {
	case !ok:
		return alert.Result{Error: "the answer has no code"}
	case code == 0:
		return alert.Result{Delivered: true}
	case code == -1: // WeCom and DingTalk: busy
		return alert.Result{Error: "the channel is busy"}
	case code == 45009: // WeCom: too many messages
		return alert.Result{Error: "too many messages", After: time.Minute}
	case code == 130101: // DingTalk: silenced for 10 minutes
		return alert.Result{Error: "too many messages", After: 10 * time.Minute}
	case code == 11232: // Feishu: too many messages
		// Its load is highest at full and half hours, so the repeats are spread.
		return alert.Result{Error: "too many messages", After: rand.N(20 * time.Second)}
	}
	return alert.Result{Final: true, Error: fmt.Sprintf("the answer has the code %d", code)}
}

// codeOf is the code that a robot answers.
func codeOf(kind string, answer []byte) (code int, ok bool) {
	name, said := "errcode", map[string]json.RawMessage{}
	if kind == "feishu" {
		name = "code"
	}
	var found *int
	if json.Unmarshal(answer, &said) != nil || json.Unmarshal(said[name], &found) != nil || found == nil {
		return 0, false
	}
	return *found, true
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(s string) time.Duration {
	if seconds, err := strconv.Atoi(s); err == nil {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	return time.Until(at)
}
