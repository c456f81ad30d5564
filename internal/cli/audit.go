package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check/audit"
	"github.com/conclave-io/conclave/process"
)

func newAudit(a *app) *cobra.Command {
	c := auditing{app: a, limits: audit.Default}
	cmd := &cobra.Command{
		Use:   "audit [ALGORITHM...]",
		Short: "Drop one assumption at a time, and prove or break each algorithm without it",
		Long: `Audit lets the model checker search the algorithms for mutual exclusion and
elections, each with one assumption dropped and all others kept: FIFO links, no loss,
no duplication, no crash, bounded delay, unique labels, a correct detector. Within
small bounds it proves each, or shows how many steps break it; where a lesser promise
breaks, it also tells whether the core promise holds: mutual exclusion, or agreement on
the leader. What the checker cannot judge is not audited, and why is told. Without
names it audits all, which takes some minutes; docs/assumptions.md has the outcome.
This is about algorithms. conclave audit-log prints who did what to a cluster.

"proved 3x2" is for 3 processes that ask twice each, with all smaller bounds of the
ladder; "safe" leaves open whether somebody may wait for ever, and "in 3 timeouts" also
what comes of it when more timers run out.`,
		Example: `  conclave audit lamport
  conclave audit maekawa raymond --json
  conclave audit lamport --scenarios runs`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.markdown, "markdown", false, "print Markdown")
	flags.StringVar(&c.scenarios, "scenarios", "", "write the runs that break something into this `folder`, as scenarios for conclave sim; those of an earlier audit of the same algorithms are replaced")
	flags.Uint64Var(&c.limits.States, "states", c.limits.States, "end each search after so many states")
	a.addJSON(cmd)
	cmd.MarkFlagsMutuallyExclusive("markdown", "json")
	return cmd
}

type auditing struct {
	*app
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
		return fmt.Errorf("--states 0: give 1 or more")
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	rows, err := audit.Run(ctx, specs, c.limits)
	if err != nil {
		return fmt.Errorf("the audit was interrupted")
	}
	if c.scenarios != "" {
		if err := audit.WriteScenarios(rows, c.scenarios); err != nil {
			return err
		}
	}
	return c.print(audit.Views(rows), func(w io.Writer) error {
		if c.markdown {
			return audit.Markdown(w, rows, c.limits)
		}
		return audit.Text(w, rows)
	})
}

// specs returns the algorithms that were asked for, or all that can be audited.
func (c *auditing) specs(names []string) ([]*process.Spec, error) {
	all := audit.Audited(algorithm.All)
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, s := range all {
		known = append(known, s.Name)
	}
	var specs []*process.Spec
	for _, name := range names {
		spec := algorithm.Find(name)
		if spec == nil || len(audit.Audited([]*process.Spec{spec})) == 0 {
			return nil, fmt.Errorf("no algorithm %q to audit; there are %s", name, strings.Join(known, ", "))
		}
		specs = append(specs, spec)
	}
	return specs, nil
}
