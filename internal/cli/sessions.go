package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

func newSessions(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the live sessions, one for each process that uses the cluster",
		Example: `  conclave sessions
  conclave sessions --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				live, err := client.Sessions(ctx)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"sessions": sessionsJSON(live)}, func(w io.Writer) error {
					return sessionsTable(w, live)
				})
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

type sessionView struct {
	ID          string    `json:"id"`
	Host        string    `json:"host"`
	PID         int64     `json:"pid"`
	Program     string    `json:"program"`
	TTLMS       int64     `json:"ttl_ms"`
	RemainingMS int64     `json:"remaining_ms"`
	Holds       uint32    `json:"holds"`
	Waits       uint32    `json:"waits"`
	Opened      time.Time `json:"opened"`
}

func sessionsJSON(live []conclave.SessionInfo) []sessionView {
	views := []sessionView{}
	for _, s := range live {
		views = append(views, sessionView{
			s.ID, s.Host, s.PID, s.Program, s.TTL.Milliseconds(), s.Remaining.Milliseconds(), s.Holds, s.Waits, s.Opened,
		})
	}
	return views
}

func sessionsTable(w io.Writer, live []conclave.SessionInfo) error {
	t := newTable(w, "SESSION", "HOST", "PID", "PROGRAM", "TTL", "LEFT", "HOLDS", "WAITS", "OPENED")
	for _, s := range live {
		left := "-" // only the leader knows
		if s.Remaining > 0 {
			left = s.Remaining.Round(time.Millisecond).String()
		}
		t.row(s.ID, shown(s.Host), number(s.PID), shown(s.Program), s.TTL.String(), left, number(s.Holds), number(s.Waits), since(s.Opened))
	}
	return t.flush()
}
