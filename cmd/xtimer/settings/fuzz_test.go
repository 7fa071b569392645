package settings

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// FuzzSettings: a file of settings is refused in words that name its line, or is
// in force; and neither it nor XTIMER_TOKENS brings a secret to light.
func FuzzSettings(f *testing.F) {
	f.Add("drain: 1m\nhistory_retention: 3d\npprof: true\negress_deny: [10.0.0.0/8, 192.0.2.7]\napps: {billing: {tokens: [{sha256: "+strings.Repeat("ab", 32)+", role: write}], webhook_secrets: [whsec_x]}}", "a:read:secret-token")
	f.Add("apps: {a: {tokens: [{sha256: x}]}}", "*:admin:secret-token,b::x")
	f.Add("apps: &a {b: *a}", ":")
	f.Add("drain: 200000d", "a:secret-token")
	f.Add("", "billing:secret-token:read")
	f.Add("&a [*a]\n---\n", "a:write:secret-token,,")
	name := filepath.Join(f.TempDir(), "xtimer.yaml")
	f.Fuzz(func(t *testing.T, file, tokens string) {
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Default()
		cmd := &cobra.Command{}
		AddFlags(cmd, s)
		if err := cmd.ParseFlags([]string{"--config", name}); err != nil {
			t.Fatal(err)
		}
		err := s.Load(cmd, func(k string) string {
			if k == "XTIMER_TOKENS" {
				return tokens
			}
			return ""
		})
		const secret = "secret-token"
		if err != nil {
			if !strings.Contains(file, secret) && strings.Contains(err.Error(), secret) {
				t.Fatalf("a token is told: %v", err)
			}
			return
		}
		for _, a := range s.Apps {
			for _, token := range a.Tokens {
				if checkRole(token.Role) != nil || bytes.Equal(token.SHA256[:], make([]byte, 32)) && !strings.Contains(file, strings.Repeat("0", 64)) {
					t.Fatalf("%+v", a)
				}
			}
		}
	})
}
