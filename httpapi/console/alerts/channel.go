package alerts

import (
	"encoding/json"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Channel is a channel as the API has it.
type Channel struct {
	App       string    `json:"app"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	URL       Text      `json:"url"`
	Secret    Text      `json:"secret"`
	Proxy     Text      `json:"proxy"`
	SMTP      *SMTP     `json:"smtp"`
	Lang      string    `json:"lang"`
	Mention   []string  `json:"mention"`
	PerMinute int       `json:"per_minute"`
	Version   int       `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`

	Deliveries []Delivery `json:"deliveries"` // the newest first
}

// Delivery is a message to a channel, and what came of it.
type Delivery struct {
	At       time.Time `json:"at"`
	Type     string    `json:"type"`
	By       string    `json:"by"`
	Count    int64     `json:"count"`
	Attempts int       `json:"attempts"`
	Outcome  string    `json:"outcome"`
	Status   int       `json:"status"`
	Answer   string    `json:"answer"`
	Error    string    `json:"error"`
}

// Last is the newest delivery; nil: there is none.
func (c *Channel) Last() *Delivery {
	if len(c.Deliveries) == 0 {
		return nil
	}
	return &c.Deliveries[0]
}

// SMTP is the mail server of a channel.
type SMTP struct {
	Host     string   `json:"host"`
	Port     int      `json:"port"`
	TLS      string   `json:"tls"`
	User     string   `json:"user"`
	Password Text     `json:"password"`
	From     string   `json:"from"`
	To       []string `json:"to"`
}

// Text is a text, or the name of a secret.
type Text struct{ Value, Secret string }

// UnmarshalJSON reads "text" or {"secret":"NAME"}.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &t.Value)
	}
	var o struct {
		Secret string `json:"secret"`
	}
	err := json.Unmarshal(b, &o)
	t.Secret = o.Secret
	return err
}

// To is where the messages go: of a URL the scheme and the host only, for the URL of a robot
// is what permits to write to it.
func (c *Channel) To() string {
	switch {
	case c.SMTP != nil:
		return net.JoinHostPort(c.SMTP.Host, strconv.Itoa(c.SMTP.Port)) + " → " + strings.Join(c.SMTP.To, ", ")
	case c.URL.Secret != "":
		return ""
	}
	u, err := url.Parse(c.URL.Value)
	if err != nil || u.Host == "" {
		return "…"
	}
	to := u.Scheme + "://" + u.Host
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		to += "/…"
	}
	return to
}
