package secret

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/object"
	"xtimer/tier/memory"
)

func vault(t *testing.T, cold object.Store, key []byte) (*Vault, *object.Set, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	set := object.New(cold, time.Now, slog.New(slog.NewTextHandler(log, nil)))
	v, err := New(set, key, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return v, set, log
}

func put(t *testing.T, v *Vault, set *object.Set, name, value string) object.Result {
	t.Helper()
	k := engine.ObjectKey{Kind: Kind, App: "app", Name: name}
	body, err := v.Body(k, value)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := set.Write(t.Context(), object.Write{Key: k, Body: body, Same: v.Same(k)})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func is(t *testing.T, v *Vault, app, name, want string) {
	t.Helper()
	if got, ok := v.Value(app, name); got != want || ok != (want != "") {
		t.Errorf("%s/%s is %q, want %q", app, name, got, want)
	}
}

func TestSealed(t *testing.T) {
	cold, key := memory.NewCold(), bytes.Repeat([]byte{7}, KeySize)
	v, set, _ := vault(t, cold, nil)
	put(t, v, set, "open", "hunter2")
	is(t, v, "app", "open", "hunter2")

	v, set, _ = vault(t, cold, key)
	is(t, v, "app", "open", "hunter2") // of before there was a key
	for i, want := range []object.Result{object.Created, object.Unchanged} {
		if got := put(t, v, set, "sealed", "hunter3"); got != want {
			t.Errorf("put %d: %s", i, got)
		}
	}
	if got := put(t, v, set, "sealed", "hunter4"); got != object.Updated {
		t.Error(got)
	}
	if got := put(t, v, set, "open", "hunter2"); got != object.Updated { // it is sealed now
		t.Error(got)
	}
	is(t, v, "app", "sealed", "hunter4")
	for _, o := range set.List(Kind, "app") {
		if strings.Contains(string(o.Body), "hunter") {
			t.Errorf("%s is stored as it is", o.Name)
		}
	}
	for _, other := range [][]byte{nil, bytes.Repeat([]byte{8}, KeySize)} {
		v, _, log := vault(t, cold, other)
		is(t, v, "app", "sealed", "")
		if !strings.Contains(log.String(), "--secret-key-file") || strings.Contains(log.String(), "hunter") {
			t.Errorf("the log says %s", log)
		}
	}
	if _, err := New(set, []byte("short"), slog.Default()); err == nil {
		t.Error("a key of 5 bytes was taken")
	}
	// One that was moved to another name cannot be opened.
	moved := *set.Get(engine.ObjectKey{Kind: Kind, App: "app", Name: "sealed"})
	moved.App = "other"
	if value, err := v.open(&moved); err == nil {
		t.Errorf("%q", value)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("XTIMER_SECRET_SHOP_EU_API_TOKEN", "of the environment")
	t.Setenv("XTIMER_TOKENS", "no secret of a user")
	t.Setenv("XTIMER_SECRET_KEY_FILE", "/a/file")
	v, set, _ := vault(t, memory.NewCold(), nil)
	is(t, v, "shop-eu", "api.token", "of the environment")
	is(t, v, "shop", "TOKENS", "")
	is(t, v, "key", "file", "")
	put(t, v, set, "api.token", "of the API")
	is(t, v, "app", "api.token", "of the API")
	if err := set.Delete(t.Context(), engine.ObjectKey{Kind: Kind, App: "app", Name: "api.token"}, nil); err != nil {
		t.Fatal(err)
	}
	is(t, v, "app", "api.token", "")
}
