package cli

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
	"github.com/conclave-io/conclave/internal/outfile"
)

func newToken(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list, rotate and revoke tokens",
		Long: `Create, list, rotate and revoke the tokens by which programs prove who they are.

A token proves the principal token:NAME to whoever has it. The servers keep only a hash of it.
Several tokens may have one name. A program gives its token by --token-file, or by the
variable CONCLAVE_TOKEN_FILE or CONCLAVE_TOKEN; over the network only with TLS.`,
		Example: `  conclave access token create reports --file reports.token
  conclave access token list
  conclave access token rotate reports --overlap 1h --file reports.token
  conclave access token revoke reports`,
		Args: subcommand("create, list, rotate or revoke"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(a), newTokenList(a), newTokenRotate(a), newTokenRevoke(a))
	return cmd
}

// defaultLife is how long a token is valid unless something else is asked for.
const defaultLife = 90 * 24 * time.Hour

// life is how long a token is valid: a duration, days such as 90d, or never ends.
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
		return errors.New("it is not a duration; write for example 90d, 12h or never")
	}
	*l = life{valid: valid}
	return nil
}

// tokenIssue draws tokens for the commands that make one.
type tokenIssue struct {
	reform
	life life
	note string
	file string
}

func (i *tokenIssue) register(cmd *cobra.Command) {
	i.life = life{valid: defaultLife}
	cmd.Flags().Var(&i.life, "expires", "how long the token is valid, such as 90d, 12h or never")
	cmd.Flags().Lookup("expires").DefValue = "90d"
	cmd.Flags().StringVar(&i.note, "note", "", "what the token is for, shown by conclave access token list")
	cmd.Flags().StringVar(&i.file, "file", "", "write the token to this file, which only its owner may read (default: print it)")
	cmd.Flags().BoolVar(&i.force, "force", false, "make a token that never expires")
	i.addJSON(cmd)
}

// tokenView is a new token. It is shown once.
type tokenView struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Expires   time.Time `json:"expires,omitzero"`
	Token     string    `json:"token,omitempty"`
}

// create draws a token for a name, and has it made valid along with what else the rules need.
func (i *tokenIssue) create(cmd *cobra.Command, name string, others func(conclave.Access) ([]conclave.AccessEdit, error)) error {
	if i.life.never && !i.force {
		return errors.New("--expires: never: set --force for a token that never expires")
	}
	var expires time.Time
	if !i.life.never {
		expires = time.Now().Add(i.life.valid).UTC().Truncate(time.Second)
	}
	token, put, id := conclave.NewToken(name, expires, i.note)
	if i.file != "" {
		if _, err := outfile.Place(i.file); err != nil {
			return fmt.Errorf("--file: %w", err)
		}
	}
	return i.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
		if _, err := i.reform.make(ctx, client, func(rules conclave.Access) (edits, error) {
			more, err := others(rules)
			return edits{list: append(more, put)}, err
		}); err != nil {
			return err
		}
		if err := writeToken(i.file, token); err != nil { // nobody has it
			_, again := client.ChangeAccess(ctx, conclave.AccessChange{Edits: []conclave.AccessEdit{conclave.DropToken(id)}})
			return errors.Join(err, again)
		}
		view := tokenView{ID: id, Principal: "token:" + name, Expires: expires, Token: token}
		if i.file != "" {
			view.Token = ""
		}
		return i.print(view, func(w io.Writer) error {
			i.say("token %s proves %s%s", id, shown(view.Principal), until(expires))
			if i.file != "" {
				return nil
			}
			_, err := fmt.Fprintln(w, token)
			return err
		})
	})
}

// writeToken puts a token into a file that only its owner may read, if there is to be one.
func writeToken(file, token string) error {
	if file == "" {
		return nil
	}
	err := outfile.Write(file, 0o600, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, token)
		return err
	})
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	return nil
}

// until says when a token ends.
func until(expires time.Time) string {
	if expires.IsZero() {
		return ", and never expires"
	}
	return " until " + expires.Format(time.RFC3339)
}

func newTokenCreate(a *app) *cobra.Command {
	i := &tokenIssue{reform: reform{app: a}}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token that proves token:NAME, and print it",
		Long: `Create a token that proves the principal token:NAME, and print it on standard output or
write it to a file. It is shown only now: the servers have no more than its hash. Give the
principal roles by conclave access grant.`,
		Example: `  conclave access token create reports --file reports.token
  conclave access token create reports --expires 12h --note "nightly job"
  conclave access token create reports --expires never --force --json`,
		Args: oneArgument("the name that the token proves, as token:NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return i.create(cmd, args[0], func(conclave.Access) ([]conclave.AccessEdit, error) { return nil, nil })
		},
	}
	i.register(cmd)
	return cmd
}

func newTokenRotate(a *app) *cobra.Command {
	i := &tokenIssue{reform: reform{app: a}}
	overlap := duration(time.Hour)
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Create another token of a name, and let the old ones end",
		Long: `Create another token that proves token:NAME, and let those that there are end after
--overlap. Until then both are valid. A program that has its token from a file takes the new
one from there for its next connection.

Exit status:
    0  there is another token
    1  no token has that name
  125  conclave itself failed, or was called wrongly`,
		Example: `  conclave access token rotate reports --file reports.token
  conclave access token rotate reports --overlap 10m
  conclave access token rotate reports --overlap 24h --expires 30d --json`,
		Args: oneArgument("the name of tokens"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if overlap < 0 {
				return fmt.Errorf("--overlap: %v: must not be negative", &overlap)
			}
			return i.create(cmd, args[0], func(rules conclave.Access) ([]conclave.AccessEdit, error) {
				return tokensEnding(rules, args[0], time.Now().Add(time.Duration(overlap)))
			})
		},
	}
	cmd.Flags().Var(&overlap, "overlap", "how long the old tokens are still valid")
	i.register(cmd)
	return cmd
}

// tokensEnding returns the edits that let the tokens of a name end at a time, unless they do so
// before.
func tokensEnding(rules conclave.Access, name string, end time.Time) (old []conclave.AccessEdit, err error) {
	found := false
	for _, t := range rules.Tokens {
		found = found || t.Name == name
		if t.Name == name && (t.Expires.IsZero() || t.Expires.After(end)) {
			old = append(old, conclave.ExpireToken(t, end))
		}
	}
	if !found {
		return nil, failure(StatusNo, "token: %q: no token has that name; see conclave access token list", name)
	}
	return old, nil
}

func newTokenList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without what they prove themselves by",
		Example: `  conclave access token list
  conclave access token list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRules(cmd, func(rules conclave.Access) error {
				return a.print(map[string]any{"tokens": rules.Tokens}, func(w io.Writer) error {
					t := newTable(w, "ID", "PROVES", "CREATED BY", "CREATED", "EXPIRES", "NOTE")
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
						t.row(token.ID, shown(proves), shown(token.Creator), token.Made.Format(time.RFC3339), expires, shown(token.Note))
					}
					return t.flush()
				})
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

func newTokenRevoke(a *app) *cobra.Command {
	r := &reform{app: a}
	cmd := &cobra.Command{
		Use:   "revoke ID|NAME",
		Short: "Revoke a token, or all tokens of a name",
		Long: `Revoke the token with an id, or all tokens of a name. Connections that it let in end at once.
What they hold ends when its TTL is over, as if the program had died.

Exit status:
    0  the token is revoked
    1  there is no such token
  125  conclave itself failed, or was called wrongly`,
		Example: `  conclave access token revoke q3mfrtzk2x5vw7aa
  conclave access token revoke reports --json`,
		Args: oneArgument("the id or the name of a token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.change(cmd, func(rules conclave.Access) (e edits, err error) {
				var byName []conclave.AccessEdit
				for _, t := range rules.Tokens {
					switch args[0] {
					case t.ID:
						e.list = append(e.list, conclave.DropToken(t.ID))
					case t.Name:
						byName = append(byName, conclave.DropToken(t.ID))
					}
				}
				if len(e.list) == 0 {
					e.list = byName
				}
				if len(e.list) == 0 {
					return e, failure(StatusNo, "token: %q: not found", args[0])
				}
				e.done = fmt.Sprintf("tokens revoked: %d", len(e.list))
				return e, nil
			})
		},
	}
	r.registerForce(cmd)
	return cmd
}
