package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

func newSessions(a *caller) *cobra.Command {
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
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(a, cmd, (*conclave.Client).Sessions, func(live []conclave.SessionInfo) error {
				return a.print(map[string]any{"sessions": each(live, sessionJSON)}, func(w io.Writer) error {
					return sessionsTable(w, live)
				})
			})
		},
	}
	a.withJSON(cmd)
	cmd.AddCommand(newEndSession(a))
	return cmd
}

const endSessionHelp = `SESSION is the public id that conclave sessions shows. Its first 8 digits are enough, if no other
session starts with them.

Waiting requests of the session leave their queues at once. Its holders are asked to leave, with the
reason: the contexts of the holds end, and conclave lock and conclave elect end their command. The
next waiter gets a hold when the holder has left, or after one TTL of the session. Until then, the
session can renew and release, but not acquire.`

func newEndSession(a *caller) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:         "end SESSION --reason WHY",
		Short:       "End a session of another process",
		Long:        endSessionHelp,
		Annotations: statuses("0 the session is ending or has ended", "1 there is no such session"),
		Example: `  conclave sessions
  conclave sessions end s-1f2e3d4c --reason "a7 goes down at 18:00"
  conclave sessions end s-1f2e3d4c5b6a798897a6b5c4d3e2f100 --reason leaked --json`,
		Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case reason == "":
				return errors.New("--reason: missing; set it to a text for the owner of the session")
			case len(reason) > conclave.MaxReason:
				return reasonTooLong(reason)
			}
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return endSession(a, ctx, client, args[0], reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason that the owner of the session is told")
	return a.withJSON(cmd)
}

// The public id of a session has 32 digits; the first 8 are enough.
const leastID, wholeID = len("s-") + 8, len("s-") + 32

func oneSession(cmd *cobra.Command, args []string) error {
	if err := takes("SESSION")(cmd, args); err != nil {
		return err
	}
	digits, public := strings.CutPrefix(args[0], "s-")
	if !public || len(args[0]) < leastID || len(args[0]) > wholeID || strings.Trim(digits, "0123456789abcdef") != "" {
		return failure(StatusError, "session: %.40q: expected s- and 8 to 32 hexadecimal digits, as `conclave sessions` shows them", args[0])
	}
	return nil
}

// endedSessionView is a session that was ended, and how many holds it had then.
type endedSessionView struct {
	ID    string `json:"id"`
	Holds int    `json:"holds"`
}

func endSession(a *caller, ctx context.Context, client *conclave.Client, given, reason string) error {
	id, err := whole(ctx, client, given)
	if err != nil {
		return err
	}
	holds, err := client.EndSession(ctx, id, reason)
	if errors.Is(err, conclave.ErrNotFound) {
		return failure(StatusNo, "session: %q: not found", id)
	}
	if err != nil {
		return err
	}
	return a.printLine(endedSessionView{id, holds}, fmt.Sprintf("session %s is ending; holds to release: %d", id, holds))
}

// whole returns the public id of the only session whose id starts with given.
func whole(ctx context.Context, client *conclave.Client, given string) (string, error) {
	if len(given) == wholeID {
		return given, nil
	}
	live, err := client.Sessions(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, s := range live {
		if !strings.HasPrefix(s.ID, given) {
			continue
		}
		if found != "" {
			return "", failure(StatusError, "session: %q: not unique; give more digits", given)
		}
		found = s.ID
	}
	if found == "" {
		return "", failure(StatusNo, "session: %q: not found", given)
	}
	return found, nil
}

type sessionView struct {
	ID          string    `json:"id"`
	Owner       string    `json:"owner,omitempty"`
	Leaving     bool      `json:"leaving,omitempty"`
	Host        string    `json:"host"`
	PID         int64     `json:"pid"`
	Program     string    `json:"program"`
	TTLMS       int64     `json:"ttl_ms"`
	RemainingMS int64     `json:"remaining_ms"`
	Holds       uint32    `json:"holds"`
	Waits       uint32    `json:"waits"`
	Home        uint64    `json:"home,omitempty"`
	Opened      time.Time `json:"opened"`
}

func sessionJSON(s conclave.SessionInfo) sessionView {
	return sessionView{
		s.ID, s.Owner, s.Leaving, s.Host, s.PID, s.Program, s.TTL.Milliseconds(), s.Remaining.Milliseconds(), s.Holds, s.Waits, s.Home, s.Opened,
	}
}

func sessionsTable(w io.Writer, live []conclave.SessionInfo) error {
	t := newTable(w, "SESSION", ownerColumn, "HOST", "PID", "PROGRAM", "TTL", "LEFT", "HOLDS", "WAITS", homeColumn, "OPENED", "LEAVING")
	for _, s := range live {
		left := "-" // only the leader knows
		if s.Remaining > 0 {
			left = s.Remaining.Round(time.Millisecond).String()
		}
		t.row(shortID(s.ID), shown(s.Owner), shown(s.Host), number(s.PID), shown(s.Program), s.TTL.String(), left, number(s.Holds), number(s.Waits), bounded(s.Home), since(s.Opened), yes(s.Leaving))
	}
	return t.flush()
}
