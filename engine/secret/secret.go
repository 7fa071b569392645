// Package secret holds the secrets of apps: values that callbacks and alert channels name, and
// that no answer, log or export shows.
package secret

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"xtimer/engine"
	"xtimer/engine/object"
)

// Kind is the kind of objects that secrets are.
const Kind = "secret"

// MaxValue is how many bytes the value of a secret may have.
const MaxValue = 4 << 10

// KeySize is the size of the key that seals secrets, in bytes.
const KeySize = 32

// Vault has the values of all secrets. Its methods may be called by many goroutines.
type Vault struct {
	set  *object.Set
	aead cipher.AEAD // nil: secrets are stored as they are
	log  *slog.Logger
	env  func(string) (string, bool)

	mu     sync.RWMutex
	values map[engine.ObjectKey]string // guarded by mu
}

// New returns the vault of a set that is not loaded yet. With a key of KeySize it seals what
// it stores by AES-256-GCM; nil: it does not.
func New(set *object.Set, key []byte, log *slog.Logger) (*Vault, error) {
	v := &Vault{set: set, log: log, env: os.LookupEnv, values: map[engine.ObjectKey]string{}}
	if key != nil {
		if len(key) != KeySize {
			return nil, fmt.Errorf("the key of secrets has %d bytes, not %d", len(key), KeySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if v.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
	}
	set.Register(object.Kind{Name: Kind, Changed: v.changed})
	return v, nil
}

// stored is the body of a secret's object.
type stored struct {
	Value  string `json:"value,omitempty"`
	Sealed []byte `json:"sealed,omitempty"`
}

// Body is the body of the object of a secret.
func (v *Vault) Body(k engine.ObjectKey, value string) ([]byte, error) {
	s := stored{Value: value}
	if v.aead != nil {
		s = stored{Sealed: v.aead.Seal(nil, nil, []byte(value), []byte(k.String()))}
	}
	return json.Marshal(s)
}

// open returns the value of a secret's object.
func (v *Vault) open(o *engine.Object) (string, error) {
	var s stored
	if err := json.Unmarshal(o.Body, &s); err != nil {
		return "", fmt.Errorf("its object is damaged: %w", err)
	}
	if s.Sealed == nil {
		return s.Value, nil
	}
	if v.aead == nil {
		return "", fmt.Errorf("it is sealed, and the server has no --secret-key-file")
	}
	b, err := v.aead.Open(nil, nil, s.Sealed, []byte(o.ObjectKey.String()))
	if err != nil {
		return "", fmt.Errorf("it was sealed with another key than that of --secret-key-file")
	}
	return string(b), nil
}

// Same reports whether two bodies hold the same value, in the same form.
func (v *Vault) Same(k engine.ObjectKey) func(a, b []byte) bool {
	return func(a, b []byte) bool {
		x, errX := v.open(&engine.Object{ObjectKey: k, Body: a})
		y, errY := v.open(&engine.Object{ObjectKey: k, Body: b})
		sealed := []byte(`"sealed"`)
		return errX == nil && errY == nil && x == y && bytes.Contains(a, sealed) == bytes.Contains(b, sealed)
	}
}

// changed reads a secret anew, or all with a zero key.
func (v *Vault) changed(k engine.ObjectKey) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if k == (engine.ObjectKey{}) {
		clear(v.values)
		for _, app := range v.set.Apps(Kind) {
			for _, o := range v.set.List(Kind, app) {
				v.read(o)
			}
		}
		return
	}
	delete(v.values, k)
	if o := v.set.Get(k); o != nil {
		v.read(o)
	}
}

func (v *Vault) read(o *engine.Object) {
	value, err := v.open(o)
	if err != nil {
		v.log.Error("a secret cannot be read", "app", o.App, "name", o.Name, "error", err)
		return
	}
	v.values[o.ObjectKey] = value
}

// Value returns the value that a secret of an app has now: that of the API, or of the
// environment.
func (v *Vault) Value(app, name string) (value string, ok bool) {
	v.mu.RLock()
	value, ok = v.values[engine.ObjectKey{Kind: Kind, App: app, Name: name}]
	v.mu.RUnlock()
	if ok {
		return value, true
	}
	variable := Variable(app, name)
	if variable == "XTIMER_SECRET_KEY_FILE" { // a setting
		return "", false
	}
	return v.env(variable)
}

// Variable is the name of the environment variable of a secret.
func Variable(app, name string) string {
	return "XTIMER_SECRET_" + strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z':
			return c - 'a' + 'A'
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			return c
		}
		return '_'
	}, app+"_"+name)
}
