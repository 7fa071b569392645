package store

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretKey(t *testing.T) {
	want := bytes.Repeat([]byte{0xa7}, 32)
	name := filepath.Join(t.TempDir(), "key")
	for _, text := range []string{string(want), strings.Repeat("a7", 32) + "\n", base64.StdEncoding.EncodeToString(want) + "\r\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := SecretKey(name); err != nil || !bytes.Equal(key, want) {
			t.Errorf("%q: %x %v", text, key, err)
		}
	}
	for _, text := range []string{"", "short", strings.Repeat("a7", 15)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := SecretKey(name); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %x %v", text, key, err)
		}
	}
	if key, err := SecretKey(""); key != nil || err != nil {
		t.Error(key, err)
	}
	if _, err := SecretKey(name + ".none"); err == nil {
		t.Error("a file that is missing was read")
	}
}
