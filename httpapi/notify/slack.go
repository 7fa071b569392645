package notify

import (
	"strings"

	"xtimer/engine/alert"
)

// Bounds of Slack, in characters.
const (
	mostHeader  = 150
	mostSection = 3000
)

// slackBody is a message to Slack: a header, the details, and a section with the mentions and
// the link. The text is what notifications and readers without blocks show.
func slackBody(d *alert.Delivery) []byte {
	blocks := []any{map[string]any{"type": "header", "text": map[string]any{"type": "plain_text", "text": cut(title(d), mostHeader), "emoji": false}}}
	foot := mentioned(d, slackMention)
	if link := d.Message.Link; link != "" {
		foot = append(foot, "<"+link+">")
	}
	for _, s := range []string{strings.Join(details(d), "\n"), strings.Join(foot, " ")} {
		if s != "" { // verbatim: names of users become no links
			blocks = append(blocks, map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": cut(s, mostSection), "verbatim": true}})
		}
	}
	return marshal(map[string]any{"text": text(d, nil, mostSection), "blocks": blocks})
}

func slackMention(who string) string {
	if who == "all" {
		return "<!channel>"
	}
	return "<@" + plain(who) + ">"
}
