package remote

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

// DefaultServer is the server that a command uses when nothing names another.
const DefaultServer = "http://127.0.0.1:8080"

// Place is the server that a command uses, and the token for it: as the flags say, else the
// environment, else the current context.
type Place struct {
	server, token, context string // flags

	url       string
	secret    string // the token
	tokenFrom string // where the token is set, for errors; "": there is none
}

// Flags adds the flags that name a server. complete registers the completion of a flag.
func (p *Place) Flags(cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.StringVar(&p.server, "server", "", "use the server at this `URL` (default: XTIMER_SERVER, the current context, or "+DefaultServer+")")
	fs.StringVar(&p.token, "token", "", "the `TOKEN` for the server; other users can read command lines, so use XTIMER_TOKEN or a context instead")
	fs.StringVar(&p.context, "context", "", "use the server and the token of this `CONTEXT`, see xtimer context (default: XTIMER_CONTEXT, or the current context)")
	_ = cmd.RegisterFlagCompletionFunc("context", CompleteContexts)
}

// CompleteContexts completes the names of contexts.
func CompleteContexts(_ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, err := ReadContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, c := range all.All {
		names = append(names, cobra.CompletionWithDesc(c.Name, c.Server))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// Names reports whether a flag names a server.
func (p *Place) Names() bool { return p.server != "" || p.context != "" }

// find decides on the server and the token. A flag counts more than the environment, and
// the environment more than the file. A context's token is sent to no other server.
func (p *Place) find() error {
	name := p.context
	switch {
	case p.server != "":
		p.url, name = p.server, ""
	case name != "":
	case os.Getenv("XTIMER_SERVER") != "":
		p.url = os.Getenv("XTIMER_SERVER")
	default:
		all, err := ReadContexts()
		if err != nil {
			return err
		}
		if name = cmp.Or(os.Getenv("XTIMER_CONTEXT"), all.Current); name == "" {
			p.url = DefaultServer
		}
	}
	if name != "" {
		if err := p.findContext(name); err != nil {
			return err
		}
	}
	switch env := os.Getenv("XTIMER_TOKEN"); {
	case p.token != "":
		p.secret, p.tokenFrom = p.token, "--token"
	case p.secret != "" && (p.context != "" || env == ""):
		p.tokenFrom = "the context " + name
	case env != "":
		p.secret, p.tokenFrom = env, "XTIMER_TOKEN"
	}
	if !strings.Contains(p.url, "://") {
		p.url = "http://" + p.url
	}
	p.url = strings.TrimRight(p.url, "/")
	return nil
}

func (p *Place) findContext(name string) error {
	all, err := ReadContexts()
	if err != nil {
		return err
	}
	c, err := all.Find(name)
	if err != nil {
		return err
	}
	p.url = c.Server
	p.secret, err = c.ReadToken()
	return err
}

// Dial returns a client of the server for a command. It does not connect yet.
func (p *Place) Dial(cmd *cobra.Command) (*api.Client, error) {
	if err := p.find(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(cmd.Context())
	cmd.SetContext(ctx)
	c, err := api.New(p.url, api.WithToken(p.secret), api.WithHTTPClient(&http.Client{Transport: &impatient{giveUp: cancel}}))
	if err != nil {
		return nil, exit.Usage("--server: %w", err)
	}
	return c, nil
}

// DialPlain returns a plain client of the server.
func (p *Place) DialPlain() (*Plain, error) {
	if err := p.find(); err != nil {
		return nil, err
	}
	return &Plain{Base: p.url, Token: p.secret}, nil
}
