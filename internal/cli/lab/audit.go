package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/lab/check/audit"
	"github.com/conclave-io/conclave/process"
)

// NewAudit returns the command audit.
func NewAudit(a *ui.App) *cobra.Command {
	c := auditing{App: a, limits: audit.Default}
	cmd := &cobra.Command{
		Use:   "audit [ALGORITHM...]",
		Short: "Check algorithms with one assumption removed at a time",
		Long: `The model checker searches each algorithm for mutual exclusion or elections without one of
its assumptions, and with all others: FIFO links, no loss, no duplication, no crash, bounded
delay, unique labels, a correct detector. Each row of the table is a proof within small
bounds, or the number of steps of a shortest run that breaks a property. If a secondary
property fails, the row also says whether the core property holds: mutual exclusion, or
agreement on the leader. If the checker cannot judge a case, the row says why.

Without ALGORITHM, audit checks all algorithms, which takes some minutes. The result is in
docs/assumptions.md.

In the table, "proved 3x2" means 3 processes that ask twice each, and all smaller bounds.
"safe" means that starvation was not checked. "in 3 timeouts" means that runs in which more
timers expire were not checked.

This command is about algorithms. To see who changed a cluster, use conclave audit-log.`,
		Example: `  conclave audit lamport
  conclave audit maekawa raymond --json
  conclave audit lamport --scenarios runs`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.markdown, "markdown", false, "print Markdown")
	flags.StringVar(&c.scenarios, "scenarios", "", "write the runs that break a property into this `folder`, as scenarios for conclave sim; those of an earlier audit of the same algorithms are replaced")
	flags.Uint64Var(&c.limits.States, "states", c.limits.States, "stop each search after this many states")
	a.WithJSON(cmd)
	cmd.MarkFlagsMutuallyExclusive("markdown", "json")
	return cmd
}

type auditing struct {
	*ui.App
	limits    audit.Limits
	markdown  bool
	scenarios string
}

func (c *auditing) run(ctx context.Context, names []string) error {
	specs, err := c.specs(names)
	if err != nil {
		return err
	}
	if c.limits.States == 0 {
		return fmt.Errorf("--states: 0: must be at least 1")
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	var restore func()
	c.limits.Room, restore = roomInCgroup()
	defer restore()
	rows, err := audit.Run(ctx, specs, c.limits)
	if err != nil {
		return fmt.Errorf("interrupted before the audit was complete")
	}
	if c.scenarios != "" {
		if err := audit.WriteScenarios(rows, c.scenarios); err != nil {
			return err
		}
	}
	return c.Print(audit.Views(rows), func(w io.Writer) error {
		if c.markdown {
			return audit.Markdown(w, audit.Entries(rows), c.limits)
		}
		return audit.Text(w, rows)
	})
}

// specs returns the named algorithms, or all that can be audited.
func (c *auditing) specs(names []string) ([]*process.Spec, error) {
	all := audit.Audited(algorithm.All)
	if len(names) == 0 {
		return all, nil
	}
	var specs []*process.Spec
	for _, name := range names {
		spec, err := findAlgorithm(name)
		if err != nil {
			return nil, err
		}
		if len(audit.Audited([]*process.Spec{spec})) == 0 {
			return nil, fmt.Errorf("algorithm: %q: cannot be audited, because the checker does not support the family %s", name, spec.Family)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}
