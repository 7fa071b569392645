package store

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"time"

	"xtimer/cmd/xtimer/settings"
	"xtimer/engine"
	"xtimer/engine/object"
	"xtimer/engine/secret"
)

// Objects builds the objects of a cold tier, and the vault of the secrets among them.
func Objects(s *settings.Settings, cold engine.Cold, log *slog.Logger) (*object.Set, *secret.Vault, error) {
	key, err := SecretKey(s.SecretKeyFile)
	if err != nil {
		return nil, nil, err
	}
	objects := object.New(cold, time.Now, log)
	vault, err := secret.New(objects, key, log)
	return objects, vault, err
}

// SecretKey reads the file of the key that seals secrets: 32 bytes, as they are, in hex, or
// in base64. Without a file there is no key.
func SecretKey(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--secret-key-file: %w", err)
	}
	if len(b) == secret.KeySize {
		return b, nil
	}
	text := string(bytes.TrimSpace(b))
	for _, decode := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString} {
		if key, err := decode(text); err == nil && len(key) == secret.KeySize {
			return key, nil
		}
	}
	return nil, fmt.Errorf("--secret-key-file %s: the file must have %d bytes, or these in hex or base64: openssl rand -hex %d", file, secret.KeySize, secret.KeySize)
}
