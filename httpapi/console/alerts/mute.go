package alerts

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// Mute is a mute as the API has it.
type Mute struct {
	App       string    `json:"app"`
	Name      string    `json:"name"`
	Match     Match     `json:"match"`
	Until     time.Time `json:"until"`
	Reason    string    `json:"reason"`
	UpdatedBy string    `json:"updated_by"`
}

// Over reports whether the mute has ended.
func (m Mute) Over(now time.Time) bool { return !m.Until.After(now) }

// AddMute makes a mute of what a form says, from now on.
func AddMute(ctx context.Context, api *client.Client, app string, form url.Values, now time.Time) error {
	length, err := time.ParseDuration(form.Get("for"))
	if err != nil {
		return &client.Error{Status: 400, Detail: "for must be a duration like 4h"}
	}
	match := map[string]string{}
	for name, input := range map[string]string{"name_prefix": "prefix", "label": "label"} {
		if text := strings.TrimSpace(form.Get(input)); text != "" {
			match[name] = text
		}
	}
	b, err := json.Marshal(map[string]any{
		"match": match, "until": now.Add(length).UTC().Format(time.RFC3339), "reason": strings.TrimSpace(form.Get("reason")),
	})
	if err != nil {
		return err
	}
	_, err = api.PutAlert(ctx, app, "mutes", "console-"+now.UTC().Format("20060102-150405.000"), b)
	return err
}
