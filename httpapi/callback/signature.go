package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"strings"
	"sync"
)

const secretPrefix = "whsec_"

// signer signs for one secret, as Standard Webhooks v1 has it.
type signer struct {
	macs sync.Pool // hash.Hash, keyed: to key one costs as much as to sign
}

// newSigners checks and takes the secrets. No error shows one.
func newSigners(secrets map[string][]string) (map[string][]*signer, error) {
	signers := make(map[string][]*signer, len(secrets))
	for app, list := range secrets {
		for i, secret := range list {
			coded, ok := strings.CutPrefix(secret, secretPrefix)
			key, err := base64.StdEncoding.DecodeString(coded)
			if !ok || err != nil || len(key) < 24 || len(key) > 64 {
				return nil, fmt.Errorf("webhook secret %d of app %q is not %s and the base64 of 24 to 64 bytes", i+1, app, secretPrefix)
			}
			signers[app] = append(signers[app], &signer{
				macs: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }},
			})
		}
	}
	return signers, nil
}

// append writes the signature of id.timestamp.body to b.
func (s *signer) append(b, id, timestamp, body []byte) []byte {
	mac := s.macs.Get().(hash.Hash)
	mac.Reset()
	mac.Write(id)
	mac.Write(dot)
	mac.Write(timestamp)
	mac.Write(dot)
	mac.Write(body)
	// The sum goes where its base64 will stand, just behind it, to need no
	// buffer of its own.
	b = append(b, "v1,"...)
	at := len(b)
	b = append(b, make([]byte, base64.StdEncoding.EncodedLen(sha256.Size))...)
	end := len(b)
	b = mac.Sum(b)
	s.macs.Put(mac)
	base64.StdEncoding.Encode(b[at:end], b[end:])
	return b[:end]
}

var dot = []byte{'.'}
