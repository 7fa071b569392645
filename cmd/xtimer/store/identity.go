package store

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// identityName is the file of a data directory's identity, a random word. A start over
// MySQL that finds the same word there knows that the former server is over, for it had
// the lock that this one has. So a copy of a data directory is not to be used beside it.
const identityName = "identity"

// identity reads the identity, or makes it where it is missing. Where that cannot be, it
// is "": then each start over MySQL waits as if the former server ran elsewhere.
func identity(dir string, log *slog.Logger) string {
	name := filepath.Join(dir, identityName)
	word, err := os.ReadFile(name)
	if err == nil && len(word) == len(rand.Text()) {
		return string(word)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		word = []byte(rand.Text())
		if err = writeWhole(name, word); err == nil {
			return string(word)
		}
	}
	log.Warn("cannot store the identity of the data directory: the next start waits 3 s before it takes the timers over", "error", err)
	return ""
}

// Journal names the journal of a data directory: another one has another name.
func Journal(dir string, log *slog.Logger) (name [16]byte) {
	word := identity(dir, log)
	if word == "" {
		word = rand.Text()
	}
	sum := sha256.Sum256([]byte(word))
	copy(name[:], sum[:])
	return name
}
