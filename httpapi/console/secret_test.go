package console

import (
	"testing"

	"xtimer/httpapi/client"
)

// A form keeps the headers that are secrets, and shows none of their values.
func TestSecretHeadersInForm(t *testing.T) {
	d := client.Definition{App: "a", Name: "n"}
	d.Callback.URL = "http://x/"
	d.Callback.Headers = map[string]string{"A": "plain", "B": `{"secret":`}
	d.Callback.SecretHeaders = map[string]string{"Authorization": "api-token"}
	callback, _ := formOf(d).document()["callback"].(map[string]any)
	headers, _ := callback["headers"].(map[string]any)
	secret, _ := headers["Authorization"].(map[string]any)
	if len(headers) != 3 || headers["A"] != "plain" || headers["B"] != `{"secret":` || secret["secret"] != "api-token" {
		t.Errorf("%v", headers)
	}
}
