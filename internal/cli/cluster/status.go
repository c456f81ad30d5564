package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/client"
)

// NewStatus returns the command status.
func NewStatus(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "status",
		Short: "Print the state of the cluster and its servers",
		Long: `The output shows the leader, each server with its role and addresses, the offsets of the clocks, and
the servers that guard locks by algorithms. ON DISK is the newest entry of the log on a server's disk;
only the leader knows it. The counts and the newest fence are those of agreement; conclave top counts
the locks that algorithms guard.`,
		Example: `  conclave status
  conclave status --json
  conclave status --servers 10.0.0.1:7400,10.0.0.2:7400 --json`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				if a.JSON {
					return printStatusForm(a, ctx, client)
				}
				s, err := admin.New(client).Status(ctx)
				if err != nil {
					return err
				}
				return writeStatus(a.Stdout, s, seatsOf(ctx, client, s.Leader))
			})
		},
	})
}

// seatsOf returns the servers that guard locks by algorithms. If no server answers, the status is
// shown without them.
func seatsOf(ctx context.Context, client *conclave.Client, leader uint64) (v admin.View) {
	if leader != 0 {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		v, _ = admin.New(client).Homes(ctx)
	}
	return v
}

// printStatusForm prints the status with all that the server tells, which is more than admin.Status has.
func printStatusForm(a *connect.App, ctx context.Context, c *conclave.Client) error {
	conn := client.Of(c)
	answer, err := client.Call(ctx, conn, api.ConclaveClient.Status, &api.StatusRequest{Certificates: true})
	if err != nil {
		return conn.Failed("status", "", err)
	}
	return a.Print(forms.StatusOf(answer, seatsOf(ctx, c, answer.GetLeader()).Members), nil)
}

func writeStatus(w io.Writer, s admin.Status, v admin.View) error {
	err := statusTable(w, s)
	if err == nil && len(s.Clocks) > 0 {
		err = writeClocks(w, s)
	}
	if err == nil && len(v.Members) > 0 {
		fmt.Fprintf(w, "\nalgorithms guard locks in epoch %d\n", v.Epoch)
		err = writeSeats(w, &v)
	}
	return err
}

func statusTable(w io.Writer, s admin.Status) error {
	if len(s.Members) == 0 { // the caller does not have the verb status
		_, err := fmt.Fprintf(w, "cluster %s, leader %d\nanswered by server %d (%s); more requires the verb status, see `conclave access check status`\n",
			ui.Shown(s.Cluster), s.Leader, s.Server, ui.Shown(s.Version))
		return err
	}
	leader := "no leader known"
	if s.Leader != 0 {
		leader = fmt.Sprintf("leader %d in term %d", s.Leader, s.Term)
	}
	fmt.Fprintf(w, "cluster %s, %s\n", ui.Shown(s.Cluster), leader)
	fmt.Fprintf(w, "answered by server %d (%s, up %v): log %d, applied %d, snapshot %d\n",
		s.Server, ui.Shown(s.Version), s.Uptime.Round(time.Second), s.CommitIndex, s.AppliedIndex, s.SnapshotIndex)
	fmt.Fprintf(w, "sessions %d, locks held %d, elections led %d, waiters %d, newest fence %d\n\n", s.Sessions, s.Locks, s.Elections, s.Waiters, s.Fence)
	columns := []string{"SERVER", "ROLE", "CLIENTS AT", "PEERS AT", "CONNECTED", "ON DISK"}
	certificates := slices.ContainsFunc(s.Members, func(m admin.Member) bool { return !m.CertificateExpires.IsZero() })
	if certificates {
		columns = append(columns, "CERTIFICATE UNTIL")
	}
	t := ui.NewTable(w, columns...)
	for _, m := range s.Members {
		onDisk := ui.Bounded(m.MatchIndex) // only the leader knows
		cells := []string{ui.Number(m.ID), role(m), ui.Shown(m.ClientAddress), ui.Shown(m.PeerAddress), ui.Yes(m.Connected || m.ID == s.Server), onDisk}
		if certificates {
			cells = append(cells, validUntil(m.CertificateExpires))
		}
		t.Row(cells...)
	}
	return t.Flush()
}

// validUntil is the day on which a certificate expires, or "-".
func validUntil(expires time.Time) string {
	if expires.IsZero() {
		return "-"
	}
	return expires.UTC().Format(time.DateOnly)
}

func role(m admin.Member) string {
	switch {
	case m.Leader:
		return "leader"
	case m.Voter:
		return "follower"
	case m.Learner:
		return "learner"
	}
	return "-"
}

// writeClocks writes the clocks of other servers, and warnings about them.
func writeClocks(w io.Writer, s admin.Status) error {
	fmt.Fprintf(w, "\nclocks, compared with that of server %d\n", s.Server)
	t := ui.NewTable(w, "SERVER", "AHEAD BY", "DRIFT")
	for _, c := range s.Clocks {
		ahead, drift := "-", "-"
		lost := slices.ContainsFunc(s.Members, func(m admin.Member) bool { return m.ID == c.Server && !m.Connected && !m.Leader })
		if !lost { // otherwise the estimate is of earlier
			ahead = fmt.Sprintf("%v +- %v", rounded(c.Offset), rounded(c.Error))
		}
		if !lost && c.Over > 0 {
			drift = fmt.Sprintf("%.4f %% +- %.4f %%", 100*c.Drift, 100*c.DriftError)
		}
		t.Row(ui.Number(c.Server), ahead, drift)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range s.Clocks {
		if c.Notable {
			fmt.Fprintf(w, "WARNING: the clocks of servers %d and %d drift apart by %.2f %%; leases are safe up to 10 %%\n", s.Server, c.Server, 100*c.Drift)
		}
	}
	return nil
}

func rounded(d time.Duration) time.Duration {
	if d.Abs() < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}
