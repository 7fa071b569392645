package callback

import (
	"bytes"

	"xtimer/engine"
)

// secretsOf returns the values of the headers of a timer that are secrets, in the order of
// the headers; or the name of one that is missing.
func (c *Caller) secretsOf(t *engine.Timer) (values []string, missing string) {
	for i := range t.Callback.Headers {
		name := t.Callback.Headers[i].Secret
		if name == "" {
			continue
		}
		v, ok := c.cfg.Secret(t.App, name)
		if !ok {
			return nil, name
		}
		values = append(values, v)
	}
	return values, ""
}

// hideIn hides the secrets in what an answer says of the members of a batch.
func hideIn(b *engine.BatchCall, secrets []string) {
	for key, o := range b.Failures {
		o.Response = withoutSecrets(o.Response, secrets)
		b.Failures[key] = o
	}
}

// leastHidden is the length from which a part of a secret is hidden, where an excerpt ends in
// it. A shorter one tells little, and an answer may well have it by chance.
const leastHidden = 4

// withoutSecrets hides the secrets in the excerpt of an answer: a target may send back what
// it was sent, and history is for more eyes than a secret is.
func withoutSecrets(answer []byte, secrets []string) []byte {
	hidden := []byte("[secret]")
	for _, s := range secrets {
		if s == "" {
			continue
		}
		answer = bytes.ReplaceAll(answer, []byte(s), hidden)
		for n := min(len(s)-1, len(answer)); n >= leastHidden; n-- {
			if bytes.HasSuffix(answer, []byte(s[:n])) {
				answer = append(answer[:len(answer)-n], hidden...)
				break
			}
		}
	}
	return answer[:min(len(answer), maxResponse)]
}
