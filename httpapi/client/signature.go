package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// tolerance is how far the time of a signature may be from ours: what was
// recorded cannot be played back for longer.
const tolerance = 5 * time.Minute

// parseSecrets reads "whsec_" and base64. No error shows a secret.
func parseSecrets(secrets []string) (keys [][]byte, err error) {
	for i, s := range secrets {
		coded, ok := strings.CutPrefix(s, "whsec_")
		key, err := base64.StdEncoding.DecodeString(coded)
		if !ok || err != nil || len(key) < 24 || len(key) > 64 {
			return nil, fmt.Errorf("secret %d is not whsec_ and the base64 of 24 to 64 bytes", i+1)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// verify checks a signature as Standard Webhooks has it (v1, HMAC-SHA256 over
// id.timestamp.body), and returns the id. One that any of the keys made will do.
func verify(keys [][]byte, h http.Header, body []byte, now time.Time) (id string, err error) {
	id = h.Get("webhook-id")
	stamp, signatures := h.Get("webhook-timestamp"), h.Get("webhook-signature")
	if id == "" || stamp == "" || signatures == "" {
		return "", errors.New("the call is not signed")
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "", errors.New("webhook-timestamp is not a time")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return "", fmt.Errorf("the signature was not made within %v of the present time", tolerance)
	}
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		want := mac.Sum(nil)
		for one := range strings.FieldsSeq(signatures) {
			coded, v1 := strings.CutPrefix(one, "v1,")
			got, err := base64.StdEncoding.DecodeString(coded)
			if v1 && err == nil && hmac.Equal(got, want) {
				return id, nil
			}
		}
	}
	return "", errors.New("no signature matches")
}
