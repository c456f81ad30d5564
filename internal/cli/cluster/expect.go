package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
)

const expectHelp = `If a job does not run, nothing happens, and no alert sees it. A rule names a lock or an election that
is to be held again at the latest one period after its last hold has ended. The cluster keeps the
rules, and when and by whom each name was last held. Each server exports them as metrics
(conclave_expect_overdue and others); an alert is in deploy/alerts.

A name counts as held while anybody holds it, also if it is shared. A job that hangs and keeps its
lock is not overdue. A new rule counts from when it was set. There can be 256 rules, and none for a
lock that an algorithm guards (conclave namespace).

Whether a name is overdue is an estimate of the server that answers, by its wall clock and by the time
that the cluster has measured: the longer one counts. So a wrong clock can report a name too early.`

// NewExpect returns the command expect.
func NewExpect(a *connect.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "expect",
		Short: "Show and set which locks are to be held again and again",
		Long:  expectHelp,
		Example: `  conclave expect
  conclave expect set nightly --every 26h
  conclave expect check nightly
  conclave expect remove nightly`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Expected, func(rules []admin.Expectation) error {
				return a.Print(jsonform.Expectations{Rules: ui.Each(rules, forms.ExpectationOf)}, func(w io.Writer) error { return rulesTable(w, rules) })
			})
		},
	}
	a.WithJSON(cmd)
	cmd.AddCommand(newExpectSet(a), newExpectRemove(a), newExpectCheck(a))
	return cmd
}

func rulesTable(w io.Writer, rules []admin.Expectation) error {
	t := ui.NewTable(w, "NAME", "CLASS", "EVERY", "OVERDUE", "NOT HELD FOR", "LAST HELD", ui.OwnerColumn, "HOST", "PID", "PROGRAM")
	for _, e := range rules {
		idle, last, host, pid, program := e.Idle.Round(time.Second).String(), "never", "-", "-", "-"
		if l := &e.Last; l.Fence != 0 {
			last, host, pid, program = l.Until.Format(time.RFC3339), ui.Shown(l.Host), ui.Number(l.PID), ui.Shown(l.Program)
		}
		if e.Held {
			idle, last = "-", "now"
		}
		t.Row(ui.Shown(e.Name), classOf(e).String(), e.Every.String(), ui.Yes(e.Overdue), idle, last, ui.Shown(e.Last.Owner), host, pid, program)
	}
	return t.Flush()
}

func classOf(e admin.Expectation) ResourceClass { return ResourceClass{e.Election} }

func newExpectSet(a *connect.App) *cobra.Command {
	var (
		of    ResourceClass
		every ui.Duration
	)
	cmd := &cobra.Command{
		Use: "set NAME --every PERIOD", Short: "Set the rule that a lock is to be held again within a period",
		Long: `The period counts from the end of the last hold to the end of the next one's wait: from the release
to the next grant. Make it longer than the time between two runs, by as much as a run may be late:
26h for a job that runs every night. To set a rule again changes its period.`,
		Example: `  conclave expect set nightly --every 26h
  conclave expect set scheduler --election --every 1m
  conclave expect set backup --every 170h`,
		Args:              oneName,
		ValidArgsFunction: completeNames(a, &of),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch period := time.Duration(every); {
			case !cmd.Flags().Changed("every"):
				return errors.New("--every: missing; set it to the longest time between two holds, such as 26h")
			case period < time.Second || period > longestPeriod:
				return fmt.Errorf("--every: %v: must be between 1s and 8784h (366 days)", &every)
			}
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				set := admin.New(client).Expect
				if of.Election {
					set = admin.New(client).ExpectElection
				}
				return set(ctx, args[0], time.Duration(every))
			})
		},
	}
	of.register(cmd, "expect a leader of an election, not a holder of a lock")
	cmd.Flags().Var(&every, "every", "the longest `period` without a holder that is not overdue (1s to 8784h)")
	return cmd
}

// longestPeriod bounds the period of a rule.
const longestPeriod = 366 * 24 * time.Hour

func newExpectRemove(a *connect.App) *cobra.Command {
	var of ResourceClass
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove the rule of a lock or an election",
		Long:        "The cluster forgets with the rule when the name was last held.",
		Annotations: ui.Statuses("0 the rule is removed", "1 NAME has no rule"),
		Example: `  conclave expect remove nightly
  conclave expect remove nightly --timeout 2s
  conclave expect remove scheduler --election`,
		Args:              oneName,
		ValidArgsFunction: completeRules(a, &of),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				remove := admin.New(client).RemoveExpectation
				if of.Election {
					remove = admin.New(client).RemoveElectionExpectation
				}
				err := remove(ctx, args[0])
				if errors.Is(err, conclave.ErrNotFound) {
					return ui.Failure(ui.StatusNo, "%s %s: has no rule", of, alike.Quoted(args[0]))
				}
				return err
			})
		},
	}
	of.register(cmd, "remove the rule of an election instead of a lock")
	return cmd
}

func newExpectCheck(a *connect.App) *cobra.Command {
	var of ResourceClass
	cmd := &cobra.Command{
		Use: "check [NAME]", Short: "Exit with 1 if a name has not been held for too long",
		Long: `Prints a line for each name that is overdue: all with a rule, or only NAME. Nothing is printed if
none is. So cron mails if a job did not run.`,
		Annotations: ui.Statuses("0 no name is overdue", "1 a name is overdue", "125 conclave failed, NAME has no rule, or the arguments are invalid"),
		Example: `  conclave expect check
  conclave expect check nightly
  conclave expect check scheduler --election --json`,
		Args:              ui.AtMostOne,
		ValidArgsFunction: completeRules(a, &of),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && of.Election {
				return errors.New("--election: requires NAME")
			}
			return connect.Show(a, cmd, (*admin.Admin).Expected, func(rules []admin.Expectation) error {
				if len(args) > 0 {
					rules = slices.DeleteFunc(rules, func(e admin.Expectation) bool { return classOf(e) != of || e.Name != args[0] })
					if len(rules) == 0 {
						return fmt.Errorf("%s %s: has no rule; set one with conclave expect set", of, alike.Quoted(args[0]))
					}
				}
				return checkRules(a, rules)
			})
		},
	}
	of.register(cmd, "check an election instead of a lock")
	return a.WithJSON(cmd)
}

// checkRules prints the rules that are not kept. It sets the exit status.
func checkRules(a *connect.App, rules []admin.Expectation) error {
	overdue := slices.DeleteFunc(rules, func(e admin.Expectation) bool { return !e.Overdue })
	if len(overdue) > 0 {
		a.Status = ui.StatusNo
	}
	return a.Print(jsonform.Expectations{Rules: ui.Each(overdue, forms.ExpectationOf)}, func(w io.Writer) error {
		for _, e := range overdue {
			if _, err := fmt.Fprintln(w, lateSentence(e)); err != nil {
				return err
			}
		}
		return nil
	})
}

// lateSentence says since when a name has not been held, and who held it last.
func lateSentence(e admin.Expectation) string {
	last := "not held since the rule was set at " + e.Set.Format(time.RFC3339)
	if l := &e.Last; l.Fence != 0 {
		last = fmt.Sprintf("last held by %s until %s", ui.Party(l.Owner, l.Program, l.PID, l.Host), l.Until.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s %s: not held for %v, expected every %v; %s", classOf(e), alike.Quoted(e.Name), e.Idle.Round(time.Second), e.Every, last)
}

// completeRules completes a name that has a rule. It completes nothing if the cluster does not answer in
// time.
func completeRules(a *connect.App, of *ResourceClass) func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) == 0 {
			a.Client.Timeout = min(a.Client.Timeout, ui.Duration(completionTimeout))
			// An error cannot be shown here.
			_ = a.Ask(context.Background(), func(ctx context.Context, client *conclave.Client) error {
				rules, err := admin.New(client).Expected(ctx)
				for _, e := range rules {
					if classOf(e) == *of {
						names = append(names, cobra.Completion(e.Name))
					}
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
