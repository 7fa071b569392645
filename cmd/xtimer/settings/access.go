package settings

import (
	"encoding/hex"
	"fmt"

	"xtimer/httpapi/access"
)

// Access is who may use the API, and how the callbacks of each app are signed.
func (s *Settings) Access() (tokens []access.Token, secrets map[string][]string) {
	secrets = map[string][]string{}
	for _, a := range s.Apps {
		for _, t := range a.Tokens {
			role, ok := access.ParseRole(t.Role)
			if !ok {
				panic(fmt.Sprintf("BUG: the role %q was not checked", t.Role))
			}
			tokens = append(tokens, access.Token{App: a.Name, Name: t.Name, Role: role, SHA256: hex.EncodeToString(t.SHA256[:])})
		}
		if len(a.WebhookSecrets) > 0 {
			secrets[a.Name] = a.WebhookSecrets
		}
	}
	return tokens, secrets
}
