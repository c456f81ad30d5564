package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// NewSessions returns the command sessions.
func NewSessions(a *connect.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the live sessions of programs",
		Long: `A program has one session for each client that it opens. The session ends one TTL after the program
dies. Only the leader knows how much of the TTL is left. A program that uses locks under an algorithm
has a second session, at a server: its home. A home never promises more than its own lease, so little
more than a second may be left of that session (conclave serve --view-lease).`,
		Example: `  conclave sessions
  conclave sessions --json
  conclave sessions end s-1f2e3d4c --reason "a7 goes down at 18:00"`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Sessions, func(live []admin.SessionInfo) error {
				return a.Print(jsonform.Sessions{Sessions: ui.Each(live, forms.SessionOf)}, func(w io.Writer) error {
					return sessionsTable(w, live)
				})
			})
		},
	}
	a.WithJSON(cmd)
	cmd.AddCommand(newEndSession(a))
	return cmd
}

const endSessionHelp = `SESSION is the public id that conclave sessions shows. Its first 8 digits are enough, if no other
session starts with them.

Waiting requests of the session leave their queues at once. Its holders are asked to leave, with the
reason: the contexts of the holds end, and conclave lock and conclave elect end their command. The
next waiter gets a hold when the holder has left, or after one TTL of the session. Until then, the
session can renew and release, but not acquire.`

func newEndSession(a *connect.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:         "end SESSION --reason WHY",
		Short:       "End a session of another process",
		Long:        endSessionHelp,
		Annotations: ui.Statuses("0 the session is ending or has ended", "1 there is no such session"),
		Example: `  conclave sessions
  conclave sessions end s-1f2e3d4c --reason "a7 goes down at 18:00"
  conclave sessions end s-1f2e3d4c5b6a798897a6b5c4d3e2f100 --reason leaked --json`,
		Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case reason == "":
				return errors.New("--reason: missing; set it to a text for the owner of the session")
			case len(reason) > admin.MaxReason:
				return reasonTooLong(reason)
			}
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return endSession(a, ctx, client, args[0], reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason that the owner of the session is told")
	return a.WithJSON(cmd)
}

// The public id of a session has 32 digits; the first 8 are enough.
const leastID, wholeID = len("s-") + 8, len("s-") + 32

func oneSession(cmd *cobra.Command, args []string) error {
	if err := ui.Takes("SESSION")(cmd, args); err != nil {
		return err
	}
	digits, public := strings.CutPrefix(args[0], "s-")
	if !public || len(args[0]) < leastID || len(args[0]) > wholeID || strings.Trim(digits, "0123456789abcdef") != "" {
		return ui.Failure(ui.StatusError, "session: %.40q: expected s- and 8 to 32 hexadecimal digits, as `conclave sessions` shows them", args[0])
	}
	return nil
}

func endSession(a *connect.App, ctx context.Context, client *conclave.Client, given, reason string) error {
	id, err := whole(ctx, client, given)
	if err != nil {
		return err
	}
	holds, err := admin.New(client).EndSession(ctx, id, reason)
	if errors.Is(err, conclave.ErrNotFound) {
		return ui.Failure(ui.StatusNo, "session: %q: not found", id)
	}
	if err != nil {
		return err
	}
	return a.PrintLine(jsonform.EndedSession{SessionID: forms.SessionIDOf(id), Holds: uint32(holds)}, fmt.Sprintf("session %s is ending; holds to release: %d", id, holds))
}

// whole returns the public id of the only session whose id starts with given.
func whole(ctx context.Context, client *conclave.Client, given string) (string, error) {
	if len(given) == wholeID {
		return given, nil
	}
	live, err := admin.New(client).Sessions(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, s := range live {
		if !strings.HasPrefix(s.ID, given) {
			continue
		}
		if found != "" {
			return "", ui.Failure(ui.StatusError, "session: %q: not unique; give more digits", given)
		}
		found = s.ID
	}
	if found == "" {
		return "", ui.Failure(ui.StatusNo, "session: %q: not found", given)
	}
	return found, nil
}

func sessionsTable(w io.Writer, live []admin.SessionInfo) error {
	t := ui.NewTable(w, "SESSION", ui.OwnerColumn, "HOST", "PID", "PROGRAM", "TTL", "LEFT", "HOLDS", "WAITS", ui.HomeColumn, "OPENED", "LEAVING")
	for _, s := range live {
		left := "-" // only the leader knows
		if s.Remaining > 0 {
			left = s.Remaining.Round(time.Millisecond).String()
		}
		t.Row(ui.ShortID(s.ID), ui.Shown(s.Owner), ui.Shown(s.Host), ui.Number(s.PID), ui.Shown(s.Program), s.TTL.String(), left, ui.Number(s.Holds), ui.Number(s.Waits), ui.Bounded(s.Home), ui.Since(s.Opened), ui.Yes(s.Leaving))
	}
	return t.Flush()
}
