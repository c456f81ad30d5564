package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

func newToken(a *connect.App) *cobra.Command {
	return ui.Group(&cobra.Command{
		Use:   "token",
		Short: "Create, list, rotate and revoke tokens",
		Long: `A program that shows a token of NAME is the principal token:NAME. Several tokens can have one
name. The servers store only a hash of each token.

A program gives its token with --token-file, or in the environment with CONCLAVE_TOKEN_FILE or
CONCLAVE_TOKEN. A token goes over the network only with TLS.`,
		Example: `  conclave access token create reports --file reports.token
  conclave access token list
  conclave access token rotate reports --overlap 1h --file reports.token
  conclave access token revoke reports`,
	}, newTokenCreate(a), newTokenList(a), newTokenRotate(a), newTokenRevoke(a))
}

// defaultLife is how long a token is valid unless --expires is given.
const defaultLife = 90 * 24 * time.Hour

// life is how long a token is valid: a duration such as 12h, days such as 90d, or forever.
type life struct {
	valid time.Duration
	never bool
}

func (l *life) Type() string { return "duration" }

func (l *life) String() string {
	if l.never {
		return "never"
	}
	return l.valid.String()
}

func (l *life) Set(text string) error {
	if text == "never" {
		*l = life{never: true}
		return nil
	}
	valid, err := time.ParseDuration(text)
	if days, is := strings.CutSuffix(text, "d"); is {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		valid = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || valid <= 0 {
		return errors.New("not a duration; use for example 90d, 12h or never")
	}
	*l = life{valid: valid}
	return nil
}

// tokenIssue is a command that creates a token.
type tokenIssue struct {
	reform
	life life
	note string
	file connect.TokenFile
}

func (i *tokenIssue) register(cmd *cobra.Command) *cobra.Command {
	i.life = life{valid: defaultLife}
	cmd.Flags().Var(&i.life, "expires", "how long the token is valid, such as 90d, 12h or never")
	cmd.Flags().Lookup("expires").DefValue = "90d"
	cmd.Flags().StringVar(&i.note, "note", "", "what the token is for, shown by conclave access token list")
	i.file.Register(cmd.Flags(), "the token")
	cmd.Flags().BoolVar(&i.force, "force", false, "allow a token that never expires")
	return i.WithJSON(cmd)
}

// tokenView is a new token. Only the command that creates it shows it.
type tokenView struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Expires   time.Time `json:"expires,omitzero"`
	Token     string    `json:"token,omitempty"`
}

// create draws a token for a name, and makes it valid together with other edits of the rules.
func (i *tokenIssue) create(cmd *cobra.Command, name string, others func(admin.Access) ([]admin.AccessEdit, error)) error {
	if i.life.never && !i.force {
		return errors.New("--expires: never: requires --force")
	}
	var expires time.Time
	if !i.life.never {
		expires = time.Now().Add(i.life.valid).UTC().Truncate(time.Second)
	}
	token, put, id := admin.NewToken(name, expires, i.note)
	if err := i.file.Check(); err != nil {
		return err
	}
	return i.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
		if _, err := i.reform.make(ctx, client, func(rules admin.Access) (edits, error) {
			more, err := others(rules)
			return edits{list: append(more, put)}, err
		}); err != nil {
			return err
		}
		if err := i.file.Write(token); err != nil { // nobody can use it: withdraw it
			_, again := admin.New(client).ChangeAccess(ctx, admin.AccessChange{Edits: []admin.AccessEdit{admin.DropToken(id)}})
			return errors.Join(err, again)
		}
		view := tokenView{ID: id, Principal: "token:" + name, Expires: expires, Token: token}
		if i.file != "" {
			view.Token = ""
		}
		return i.Print(view, func(w io.Writer) error {
			i.Say("token %s proves %s%s", id, ui.Shown(view.Principal), until(expires))
			if i.file != "" {
				return nil
			}
			_, err := fmt.Fprintln(w, token)
			return err
		})
	})
}

// until describes when a token expires.
func until(expires time.Time) string {
	if expires.IsZero() {
		return ", and never expires"
	}
	return " until " + expires.Format(time.RFC3339)
}

func newTokenCreate(a *connect.App) *cobra.Command {
	i := &tokenIssue{reform: reform{App: a}}
	return i.register(&cobra.Command{
		Use:   "create NAME",
		Short: "Create a token that proves token:NAME",
		Long: `The token is printed on standard output, or written to --file. It cannot be shown again,
because the servers store only its hash. To give roles to the principal token:NAME, use
conclave access grant.`,
		Example: `  conclave access token create reports --file reports.token
  conclave access token create reports --expires 12h --note "nightly job"
  conclave access token create reports --expires never --force --json`,
		Args: ui.Takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return i.create(cmd, args[0], func(admin.Access) ([]admin.AccessEdit, error) { return nil, nil })
		},
	})
}

func newTokenRotate(a *connect.App) *cobra.Command {
	i := &tokenIssue{reform: reform{App: a}}
	overlap := ui.Duration(time.Hour)
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Create a new token of a name, and let the old ones expire",
		Long: `The old tokens of NAME expire after --overlap. Until then they and the new token are valid. A
program that reads its token from a file uses the new one for its next connection.`,
		Annotations: ui.Statuses("0 a new token is created", "1 no token has this name"),
		Example: `  conclave access token rotate reports --file reports.token
  conclave access token rotate reports --overlap 10m
  conclave access token rotate reports --overlap 24h --expires 30d --json`,
		Args: ui.Takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if overlap < 0 {
				return fmt.Errorf("--overlap: %v: must be at least 0s", &overlap)
			}
			return i.create(cmd, args[0], func(rules admin.Access) ([]admin.AccessEdit, error) {
				return tokensEnding(rules, args[0], time.Now().Add(time.Duration(overlap)))
			})
		},
	}
	cmd.Flags().Var(&overlap, "overlap", "how long the old tokens stay valid")
	return i.register(cmd)
}

// tokensEnding returns the edits that let the tokens of a name expire at end, unless they expire
// before.
func tokensEnding(rules admin.Access, name string, end time.Time) (old []admin.AccessEdit, err error) {
	found := false
	for _, t := range rules.Tokens {
		found = found || t.Name == name
		if t.Name == name && (t.Expires.IsZero() || t.Expires.After(end)) {
			old = append(old, admin.ExpireToken(t, end))
		}
	}
	if !found {
		return nil, ui.Failure(ui.StatusNo, "token: %q: not found; `conclave access token list` lists the names", name)
	}
	return old, nil
}

func newTokenList(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "list",
		Short: "List the tokens, without their secrets",
		Long:  "The table shows who created each token, when it expires, and its note.",
		Example: `  conclave access token list
  conclave access token list --timeout 2s
  conclave access token list --json`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Access, func(rules admin.Access) error {
				return a.Print(map[string]any{"tokens": ui.Each(rules.Tokens, forms.TokenOf)}, func(w io.Writer) error {
					t := ui.NewTable(w, "ID", "PROVES", "CREATED BY", "CREATED", "EXPIRES", "NOTE")
					for _, token := range rules.Tokens {
						expires := "never"
						if !token.Expires.IsZero() {
							expires = token.Expires.Format(time.RFC3339)
						}
						proves := "token:" + token.Name
						if token.PeerAddress != "" {
							proves = "may join at " + token.PeerAddress
						}
						if token.Used {
							proves += " (used)"
						}
						t.Row(token.ID, ui.Shown(proves), ui.Shown(token.Creator), token.Made.Format(time.RFC3339), expires, ui.Shown(token.Note))
					}
					return t.Flush()
				})
			})
		},
	})
}

func newTokenRevoke(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	return r.registerForce(&cobra.Command{
		Use:   "revoke ID|NAME",
		Short: "Revoke a token, or all tokens of a name",
		Long: `Connections that used the token end at once. The holds of these programs end one TTL later, as
if the programs had died.`,
		Annotations: ui.Statuses("0 the token is revoked", "1 there is no such token"),
		Example: `  conclave access token list
  conclave access token revoke q3mfrtzk2x5vw7aa
  conclave access token revoke reports --json`,
		Args: ui.Takes("ID or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if connect.IsToken(args[0]) {
				return errors.New("token: give its ID, which is between cvt1_ and the next _, or its name: others can see the arguments of a command")
			}
			return r.change(cmd, func(rules admin.Access) (e edits, err error) {
				var byName []admin.AccessEdit
				for _, t := range rules.Tokens {
					switch args[0] {
					case t.ID:
						e.list = append(e.list, admin.DropToken(t.ID))
					case t.Name:
						byName = append(byName, admin.DropToken(t.ID))
					}
				}
				if len(e.list) == 0 {
					e.list = byName
				}
				if len(e.list) == 0 {
					return e, ui.Failure(ui.StatusNo, "token: %q: not found", args[0])
				}
				e.done = fmt.Sprintf("tokens revoked: %d", len(e.list))
				return e, nil
			})
		},
	})
}
