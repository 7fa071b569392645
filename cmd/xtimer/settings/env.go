package settings

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/httpapi/access"
)

// AddFlags gives the command a flag for every setting.
func AddFlags(cmd *cobra.Command, s *Settings) {
	for _, st := range settingList(s) {
		f := cmd.Flags().VarPF(st.value, st.name, "", st.usage)
		if st.value.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// Load completes the settings of which the flags are set already:
// flag > environment > file > default.
func (s *Settings) Load(cmd *cobra.Command, getenv func(string) string) error {
	// What the command line and the environment say is set first, for it names
	// the file; what they have set, the file leaves alone.
	for _, st := range settingList(s) {
		if cmd.Flags().Changed(st.name) {
			s.from[st.name] = "flag --" + st.name
		} else if v := getenv(st.env()); v != "" {
			if err := st.value.Set(v); err != nil {
				return fmt.Errorf("%s: %w", st.env(), err)
			}
			s.from[st.name] = "environment " + st.env()
		}
	}
	if s.Config != "" {
		if err := s.readFile(s.Config); err != nil {
			return err
		}
	}
	if err := s.addTokens(getenv("XTIMER_TOKENS")); err != nil {
		return fmt.Errorf("XTIMER_TOKENS: %w", err)
	}
	if err := s.fillCluster(); err != nil {
		return err
	}
	return s.check()
}

// addTokens reads app:role:token,… and adds them to what the file has. Its
// errors never show a token.
func (s *Settings) addTokens(list string) error {
	if list == "" {
		return nil
	}
	for i, one := range strings.Split(list, ",") {
		part := strings.SplitN(strings.TrimSpace(one), ":", 3)
		if len(part) != 3 || part[0] == "" || part[2] == "" {
			return fmt.Errorf("item %d does not have the form app:role:token", i+1)
		}
		if checkRole(part[1]) != nil { // it may be the token, where the parts are in another order
			return fmt.Errorf("item %d: the role (the second part) must be admin, write or read; an item has the form app:role:token", i+1)
		}
		if err := checkApp(part[0]); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
		a := s.app(part[0], "environment XTIMER_TOKENS")
		a.Tokens = append(a.Tokens, Token{SHA256: sha256.Sum256([]byte(part[2])), Role: part[1], from: "environment XTIMER_TOKENS"})
	}
	return nil
}

// app finds the app of that name, or makes it.
func (s *Settings) app(name, from string) *App {
	i, ok := slices.BinarySearchFunc(s.Apps, name, func(a App, n string) int { return strings.Compare(a.Name, n) })
	if !ok {
		s.Apps = slices.Insert(s.Apps, i, App{Name: name, from: from})
	}
	return &s.Apps[i]
}

// checkApp refuses the name of an app that no timer can have; "*" means all apps. The error
// does not show the name, which may be a token in the wrong place.
func checkApp(name string) error {
	if name == access.AllApps {
		return nil
	}
	d := engine.NewDefinition()
	d.App = name
	var f *engine.Fault
	if errors.As(plan.Validate(&d), &f) {
		for _, x := range f.Fields {
			if x.Field == "app" {
				return fmt.Errorf("the name of an app %s; * means all apps", x.Detail)
			}
		}
	}
	return nil
}

func checkRole(s string) error {
	if s != "admin" && s != "write" && s != "read" {
		return fmt.Errorf("%q is not a role: admin, write or read", s)
	}
	return nil
}
