package admin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// SessionInfo describes a live session.
type SessionInfo struct {
	// ID is public: "s-" and 32 hexadecimal digits.
	ID string
	// Owner is the principal that opened it. It is empty for an anonymous one.
	Owner string
	// Leaving means that EndSession is ending the session.
	Leaving bool
	TTL     time.Duration
	Host    string
	PID     int64
	Program string
	Holds   uint32
	Waits   uint32
	Opened  time.Time
	// Remaining is the time left before the session expires. It is 0 if the answering server
	// does not know it.
	Remaining time.Duration
	// Home is the server that alone keeps the session, for locks that an algorithm guards. It
	// is 0 for a session that the whole cluster keeps.
	Home uint64
}

// Sessions returns the live sessions by id.
func (a *Admin) Sessions(ctx context.Context) ([]SessionInfo, error) {
	ctx, cancel := client.Bounded(ctx)
	defer cancel()
	var all []SessionInfo
	var after []byte
	for more := true; more; {
		page, err := call(ctx, a, "sessions", api.ConclaveClient.Sessions, &api.SessionsRequest{After: after})
		if err != nil {
			return nil, fmt.Errorf("%w (after session %s)", err, client.PublicID(after))
		}
		for _, s := range page.GetSessions() {
			all = append(all, sessionInfoOf(s))
			after = s.GetId()
		}
		more = page.GetMore() && len(page.GetSessions()) > 0
	}
	return all, nil
}

// EndSession ends a session of somebody else, by its public id, and says why. Its
// waits end at once. Its holders are asked to leave as by Revoke, and keep their holds
// until they have left, or for one TTL. Meanwhile the session acquires nothing more.
// EndSession returns how many holds the session had to release, or conclave.ErrNotFound if
// there is no such session. Without a deadline in ctx it tries for 10 seconds.
func (a *Admin) EndSession(ctx context.Context, id, reason string) (holds int, err error) {
	raw, err := client.ParsePublicID(id)
	if err != nil {
		return 0, fmt.Errorf("conclave: %w", err)
	}
	if len(reason) > MaxReason {
		return 0, fmt.Errorf("conclave: end session: reason: %d bytes: must have at most %d bytes", len(reason), MaxReason)
	}
	var missing error
	err = a.ask(ctx, "end session "+id, func(ctx context.Context, server api.ConclaveClient) error {
		answer, err := server.EndSession(ctx, &api.EndSessionRequest{Id: raw, Reason: reason})
		if status.Code(err) == codes.NotFound {
			missing = &conclave.RequestError{Op: "end session", Name: id, Code: api.Code_CODE_NOT_FOUND, Message: status.Convert(err).Message()}
			return nil
		}
		holds = int(answer.GetHolds())
		return err
	})
	return holds, cmp.Or(err, missing)
}

func sessionInfoOf(s *api.Session) SessionInfo {
	return SessionInfo{
		ID: client.PublicID(s.GetId()), Owner: s.GetOwner(), Leaving: s.GetLeaving(), TTL: time.Duration(s.GetTtlNs()), Host: s.GetHost(), PID: s.GetPid(),
		Program: s.GetProgram(), Holds: s.GetHolds(), Waits: s.GetWaits(), Opened: time.Unix(0, s.GetOpenedUnixNs()),
		Remaining: time.Duration(s.GetRemainingNs()), Home: s.GetHome(),
	}
}
