package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

const namespaceHelp = `A namespace is a prefix of names of locks, and what guards them. Agreement guards all that
are in none: each grant is in the log of a majority of the servers. An algorithm for
mutual exclusion between the servers needs no log and no leader. In return

  - a hold is lost when the server that its holder is connected to crashes: others get the
    lock about a second later;
  - a pause of a program, or of a server, for longer than 0.8 s loses the lock, whatever its
    TTL is;
  - each change of the members pauses all of these locks for a moment;
  - shared locks, limits and elections are left to agreement, and fences compare for one
    name only.

A guard changes once nothing is held under the prefix. Until then nothing more is granted
there.`

func newNamespace(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "namespace",
		Short: "Show and set which algorithm guards which locks",
		Long:  namespaceHelp,
		Example: `  conclave namespace list
  conclave namespace set reports/ --algorithm suzuki-kasami
  conclave namespace remove reports/`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: %q: must be list, set or remove", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNamespaceList(a), newNamespaceSet(a), newNamespaceRemove(a))
	return cmd
}

func newNamespaceList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List what guards which prefix",
		Example: "  conclave namespace list\n  conclave namespace list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				v, err := client.View(ctx)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"guards": guardsJSON(v.Guards)}, func(w io.Writer) error { return writeGuards(w, v.Guards) })
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

// changing are the flags of a change of a guard.
type changing struct {
	options []string
	wait    duration
	force   bool
	reason  string
}

func (c *changing) register(cmd *cobra.Command) {
	cmd.Flags().Var(&c.wait, "wait", "cancel the change if something is still held after this long (default: leave it under way after --timeout)")
	cmd.Flags().Lookup("wait").DefValue = ""
	cmd.Flags().BoolVar(&c.force, "force", false, "ask holders to leave")
	cmd.Flags().StringVar(&c.reason, "reason", "", "what holders are told (with --force)")
}

func (c *changing) terms(a *app) (options []conclave.GuardOption, err error) {
	wait := time.Duration(c.wait)
	switch {
	case c.reason != "" && !c.force:
		return nil, errors.New("--reason: is for holders that are asked to leave: set --force, too")
	case wait < 0:
		return nil, fmt.Errorf("--wait: %v: must not be negative", wait)
	case wait > 0:
		options = append(options, conclave.CancelAfter(wait))
		a.client.timeout += c.wait
	}
	if c.force {
		options = append(options, conclave.AskHolders(c.reason))
	}
	return options, nil
}

func newNamespaceSet(a *app) *cobra.Command {
	var (
		how       changing
		algorithm string
	)
	cmd := &cobra.Command{
		Use: "set PREFIX", Short: "Set what guards the locks whose names start with a prefix",
		Long: namespaceHelp,
		Example: `  conclave namespace set reports/ --algorithm suzuki-kasami
  conclave namespace set units/ --algorithm k-ricart-agrawala --option k=3 --wait 30s
  conclave namespace set reports/ --algorithm agreement --force --reason "maintenance"`,
		Args: onePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			if algorithm == "" {
				return errors.New("--algorithm: missing; name one such as suzuki-kasami, or agreement")
			}
			use := conclave.Use{Algorithm: algorithm, Options: strings.Join(slices.Sorted(slices.Values(how.options)), ",")}
			if algorithm == agreement {
				use.Algorithm = ""
			}
			terms, err := how.terms(a)
			if err != nil {
				return err
			}
			return a.changeGuard(cmd.Context(), args[0], func(ctx context.Context, client *conclave.Client) error {
				return client.SetGuard(ctx, args[0], use, terms...)
			}, func(g *conclave.Guard) bool { return g != nil && g.Use == use })
		},
	}
	cmd.Flags().StringVar(&algorithm, "algorithm", "", "what guards them, such as suzuki-kasami, or agreement")
	cmd.Flags().StringSliceVar(&how.options, "option", nil, "an option of the algorithm, name=value; may be given again")
	how.register(cmd)
	return cmd
}

func newNamespaceRemove(a *app) *cobra.Command {
	var how changing
	cmd := &cobra.Command{
		Use: "remove PREFIX", Short: "Remove the guard of a prefix, so that the one of a shorter prefix takes over",
		Example: `  conclave namespace remove reports/
  conclave namespace remove reports/ --wait 30s`,
		Args: onePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			terms, err := how.terms(a)
			if err != nil {
				return err
			}
			return a.changeGuard(cmd.Context(), args[0], func(ctx context.Context, client *conclave.Client) error {
				return client.RemoveGuard(ctx, args[0], terms...)
			}, func(g *conclave.Guard) bool { return g == nil })
		},
	}
	how.register(cmd)
	return cmd
}

// agreement is what commands call the guard of names that the log of the servers decides.
const agreement = "agreement"

func named(algorithm string) string {
	if algorithm == "" {
		return agreement
	}
	return algorithm
}

// onePrefix wants one argument, a prefix of names.
func onePrefix(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: %d arguments: give one prefix of names", cmd.CommandPath(), len(args))
	}
	return nil
}

// changeGuard begins a change, and waits until it is made or cancelled.
func (a *app) changeGuard(ctx context.Context, prefix string, begin func(context.Context, *conclave.Client) error, made func(*conclave.Guard) bool) error {
	return a.ask(ctx, func(ctx context.Context, client *conclave.Client) error {
		if err := begin(ctx, client); err != nil {
			return err
		}
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for {
			v, err := client.View(ctx)
			if err != nil {
				return err
			}
			g := find(v.Guards, prefix)
			switch {
			case g != nil && g.Change != nil: // still under way
			case made(g):
				return nil
			default:
				return fmt.Errorf("namespace %q: the change was cancelled: locks under the prefix are still held; see conclave why, or give --force", prefix)
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return fmt.Errorf("namespace %q: the change is still under way: locks under the prefix are held; conclave namespace list shows how it goes on, and --force asks the holders to leave, who have the time of their TTL", prefix)
			}
		}
	})
}

func find(guards []conclave.Guard, prefix string) *conclave.Guard {
	if at := slices.IndexFunc(guards, func(g conclave.Guard) bool { return g.Prefix == prefix }); at >= 0 {
		return &guards[at]
	}
	return nil
}

type guardView struct {
	Prefix    string `json:"prefix"`
	Algorithm string `json:"algorithm"`
	Options   string `json:"options,omitempty"`
	// Next is what it changes to, absent if it does not.
	Change *guardChangeView `json:"change,omitempty"`
}

type guardChangeView struct {
	Algorithm string   `json:"algorithm"`
	Options   string   `json:"options,omitempty"`
	Remove    bool     `json:"remove,omitempty"`
	Quiet     []uint64 `json:"quiet,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	By        string   `json:"by,omitempty"`
}

func guardsJSON(guards []conclave.Guard) []guardView {
	list := []guardView{}
	for _, g := range guards {
		view := guardView{Prefix: g.Prefix, Algorithm: named(g.Use.Algorithm), Options: g.Use.Options}
		if c := g.Change; c != nil {
			view.Change = &guardChangeView{named(c.Use.Algorithm), c.Use.Options, c.Remove, c.Quiet, c.Reason, c.By}
		}
		list = append(list, view)
	}
	return list
}

func writeGuards(w io.Writer, guards []conclave.Guard) error {
	t := newTable(w, "PREFIX", "GUARD", "OPTIONS", "CHANGES TO")
	for _, g := range guards {
		next := "-"
		switch c := g.Change; {
		case c == nil:
		case c.Remove:
			next = "the guard of a shorter prefix"
		default:
			next = strings.TrimSpace(named(c.Use.Algorithm) + " " + c.Use.Options)
		}
		t.row(shown(g.Prefix), named(g.Use.Algorithm), shown(g.Use.Options), next)
	}
	return t.flush()
}
