package cluster

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
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

const namespaceHelp = `A namespace is a prefix of lock names, and the guard that decides who gets these locks. The guard
of all other locks is agreement: each grant is in the log of a majority of the servers.

An algorithm for mutual exclusion can be a guard too. It runs between the servers, without log and
leader, and has these limits:
  - If a server crashes, the clients connected to it lose their locks. Others get these locks
    about one second later.
  - If a program or a server pauses for more than 0.8 s, its locks are lost, whatever their TTL.
  - Each change of the servers that take part pauses all of these locks for a moment.
  - Shared locks and limits are not available. Fences are comparable only for the same name.
Elections are always decided by agreement.

To change a guard, the servers stop granting locks under the prefix. The guard changes when no lock
under the prefix is held. If that takes longer than --timeout, namespace set exits with 125 and the
change stays in progress; set the present guard again to cancel it, or use --wait from the start.`

// Guards returns the names of all guards.
func Guards() []string {
	names := []string{Agreement}
	for _, s := range served.Locks {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// guardHelp lists the guards and their options.
func guardHelp() string {
	var lines []string
	for some := range slices.Chunk(Guards(), 6) {
		lines = append(lines, "  "+strings.Join(some, ", "))
	}
	return namespaceHelp + `

Guards:
` + strings.Join(lines, ",\n") + `

conclave algorithms NAME describes an algorithm with its options. Every algorithm has three more:
  coordinator   which server coordinates a name: spread (by a hash of the name, the default), first,
                or elected (needs an election: see conclave view set)
  delay         the bound of one message delay in microseconds (default 5000)
  section       about how long a lock is held, in microseconds (default 20000)
With k-ricart-agrawala, option k (default 2) is the number of programs that can hold one name at the
same time; each takes one unit, without --limit.`
}

// NewNamespace returns the command namespace.
func NewNamespace(a *connect.App) *cobra.Command {
	return ui.Group(&cobra.Command{
		Use:   "namespace",
		Short: "Show and set which algorithm guards which locks",
		Long:  namespaceHelp,
		Example: `  conclave namespace list
  conclave namespace set reports/ --algorithm suzuki-kasami
  conclave namespace remove reports/`,
	}, newNamespaceList(a), newNamespaceSet(a), newNamespaceRemove(a))
}

func newNamespaceList(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use: "list", Short: "List the guard of each prefix",
		Long: "CHANGES TO shows the next guard while a change is in progress.",
		Example: `  conclave namespace list
  conclave namespace list --timeout 2s
  conclave namespace list --json`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).View, func(v admin.View) error {
				return a.Print(map[string]any{"guards": ui.Each(v.Guards, forms.GuardOf)}, func(w io.Writer) error { return writeGuards(w, v.Guards) })
			})
		},
	})
}

// changing are the flags of a change of a guard.
type changing struct {
	options []string
	wait    ui.Duration
	force   bool
	reason  string
}

func (c *changing) register(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Var(&c.wait, "wait", "cancel the change if a lock is still held after this time (default: return after --timeout, and leave the change in progress)")
	cmd.Flags().BoolVar(&c.force, "force", false, "ask the holders to leave")
	cmd.Flags().StringVar(&c.reason, "reason", "", "with --force: the reason that the holders are told")
	return cmd
}

// guardOptions returns the options of the change. It extends --timeout by --wait.
func (c *changing) guardOptions(a *connect.App) (options []admin.GuardOption, err error) {
	wait := time.Duration(c.wait)
	switch {
	case c.reason != "" && !c.force:
		return nil, errors.New("--reason: requires --force")
	case wait < 0:
		return nil, fmt.Errorf("--wait: %v: must be at least 0s", wait)
	case wait > 0:
		options = append(options, admin.CancelAfter(wait))
		a.Client.Timeout += c.wait
	}
	if c.force {
		options = append(options, admin.AskHolders(c.reason))
	}
	return options, nil
}

func newNamespaceSet(a *connect.App) *cobra.Command {
	var (
		how       changing
		algorithm string
	)
	cmd := &cobra.Command{
		Use: "set PREFIX", Short: "Set the guard of the locks whose names start with a prefix",
		Long: guardHelp(),
		Example: `  conclave namespace set reports/ --algorithm suzuki-kasami
  conclave namespace set units/ --algorithm k-ricart-agrawala --option k=3 --wait 30s
  conclave namespace set reports/ --algorithm agreement --force --reason "maintenance"`,
		Args: ui.Takes("PREFIX"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if algorithm == "" {
				return errors.New("--algorithm: missing; set it to an algorithm such as suzuki-kasami, or to agreement")
			}
			use := admin.Use{Algorithm: algorithm, Options: strings.Join(slices.Sorted(slices.Values(how.options)), ",")}
			if algorithm == Agreement {
				use.Algorithm = ""
			}
			options, err := how.guardOptions(a)
			if err != nil {
				return err
			}
			return changeGuard(a, cmd.Context(), args[0], func(ctx context.Context, client *conclave.Client) error {
				return admin.New(client).SetGuard(ctx, args[0], use, options...)
			}, func(g *admin.Guard) bool { return g != nil && g.Use == use })
		},
	}
	cmd.Flags().StringVar(&algorithm, "algorithm", "", "the guard: an `algorithm` such as suzuki-kasami, or agreement")
	cmd.Flags().StringSliceVar(&how.options, "option", nil, "set an option of the algorithm, as `name=value`; may be repeated")
	return how.register(cmd)
}

func newNamespaceRemove(a *connect.App) *cobra.Command {
	var how changing
	return how.register(&cobra.Command{
		Use: "remove PREFIX", Short: "Remove the guard of a prefix",
		Long: `The guard of the longest shorter prefix takes over, or agreement if there is none. The change
waits until no lock under the prefix is held; see conclave namespace --help.`,
		Example: `  conclave namespace remove reports/
  conclave namespace remove reports/ --wait 30s
  conclave namespace remove reports/ --force --reason "maintenance"`,
		Args: ui.Takes("PREFIX"),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := how.guardOptions(a)
			if err != nil {
				return err
			}
			return changeGuard(a, cmd.Context(), args[0], func(ctx context.Context, client *conclave.Client) error {
				return admin.New(client).RemoveGuard(ctx, args[0], options...)
			}, func(g *admin.Guard) bool { return g == nil })
		},
	})
}

// Agreement is the guard that decides with the log of the servers.
const Agreement = "agreement"

func guardName(algorithm string) string {
	if algorithm == "" {
		return Agreement
	}
	return algorithm
}

// changeGuard begins a change and waits until it is complete or cancelled.
func changeGuard(a *connect.App, ctx context.Context, prefix string, begin func(context.Context, *conclave.Client) error, made func(*admin.Guard) bool) error {
	return a.Ask(ctx, func(ctx context.Context, client *conclave.Client) error {
		if err := begin(ctx, client); err != nil {
			return err
		}
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for {
			v, err := admin.New(client).View(ctx)
			if err != nil {
				return err
			}
			g := find(v.Guards, prefix)
			switch {
			case g != nil && g.Change != nil: // in progress
			case made(g):
				return nil
			default:
				return fmt.Errorf("namespace %q: change cancelled, because locks under the prefix are held%s; set --force to ask the holders to leave", prefix, anyHeld(client, prefix))
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return fmt.Errorf("namespace %q: change in progress, because locks under the prefix are held%s; set --force to ask the holders to leave, wait and see `conclave namespace list`, or set the present guard again to cancel the change", prefix, anyHeld(client, prefix))
			}
		}
	})
}

// anyHeld names the first lock under a prefix that is held, and its holder, or returns "".
func anyHeld(client *conclave.Client, prefix string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // that of the change has ended
	defer cancel()
	known, _ := client.List(ctx, prefix) // without an answer none is named
	for _, r := range known {
		if len(r.Holders) > 0 {
			return fmt.Sprintf(" (%s%s)", ui.Shown(r.Name), By(r.Holders[0]))
		}
	}
	return ""
}

func find(guards []admin.Guard, prefix string) *admin.Guard {
	if at := slices.IndexFunc(guards, func(g admin.Guard) bool { return g.Prefix == prefix }); at >= 0 {
		return &guards[at]
	}
	return nil
}

func writeGuards(w io.Writer, guards []admin.Guard) error {
	t := ui.NewTable(w, "PREFIX", "GUARD", "OPTIONS", "CHANGES TO")
	for _, g := range guards {
		next := "-"
		switch c := g.Change; {
		case c == nil:
		case c.Remove:
			next = "the guard of a shorter prefix"
		default:
			next = strings.TrimSpace(guardName(c.Use.Algorithm) + " " + c.Use.Options)
		}
		t.Row(ui.Shown(g.Prefix), guardName(g.Use.Algorithm), ui.Shown(g.Use.Options), next)
	}
	return t.Flush()
}

// blockedBy says that nobody gets the lock because its guard is changing, or returns "".
func blockedBy(guards []admin.Guard, name string) string {
	var own *admin.Guard
	for i := range guards {
		if g := &guards[i]; strings.HasPrefix(name, g.Prefix) && (own == nil || len(g.Prefix) > len(own.Prefix)) {
			own = g
		}
	}
	if own == nil || own.Change == nil {
		return ""
	}
	next := "that of a shorter prefix"
	if !own.Change.Remove {
		next = guardName(own.Change.Use.Algorithm)
	}
	return fmt.Sprintf("no lock under %q is granted while its guard changes from %s to %s; the change waits until none is held there", own.Prefix, guardName(own.Use.Algorithm), next)
}
