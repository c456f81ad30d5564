package admission

import (
	"context"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/stream"
)

const (
	// remindEvery is how often a server that other machines can reach logs that there are no
	// access rules, and lookEvery how often it checks.
	remindEvery = time.Minute
	lookEvery   = time.Second
	// confirmedFor is how long a server relies on the leader's word that there are no rules.
	confirmedFor = time.Second
)

// What the answer to a caller who is refused while there are no rules, and the log, say alike.
const (
	onSocketOnly = "the cluster has no rules of access yet, so a server that other machines can reach accepts only callers on its admin socket"
	createRules  = "run conclave access init on the machine of a server, or start the servers with --access open"
)

// Mode returns whether there are access rules and, if not, who is admitted.
func (g *Gate) Mode() access.Mode {
	if mode := g.cfg.Node.AccessMode(); mode != access.Unset || !g.cfg.Open {
		return mode
	}
	return access.Open
}

// withoutRules returns an error if a caller may not make a call in a cluster without rules.
// Callers on this machine may do everything. Others may do nothing until somebody creates rules
// or opens the cluster.
func (g *Gate) withoutRules(ctx context.Context, who stream.Caller, mode access.Mode) error {
	if mode != access.Unset || g.cfg.Open || who.Vouched || who.Via == "local" || !g.cfg.Exposed {
		return nil
	}
	// This server may lag behind, and a refused caller does not try again. So ask the
	// leader.
	if last := g.unruled.Load(); last == 0 || g.monotonic()-last > int64(confirmedFor) {
		switch answer, err := g.ask(ctx); {
		case err != nil:
			return err
		case answer.GetMode() != access.Unset.String():
			return errLags
		}
		g.unruled.Store(g.monotonic())
	}
	return status.Error(codes.PermissionDenied, onSocketOnly+": "+createRules)
}

// errLags asks the caller to try again.
var errLags = status.Error(codes.Unavailable, "this server does not know the rules of access yet; try again")

// confirmed are rules that a leader said were the newest when it was asked at a time by monotonic().
type confirmed struct {
	rules *access.State
	asked int64
}

// newest returns rules that were the newest at some time after it was called. If the server lags
// behind them, the caller has to try again. One call at a time asks the leader, and its answer
// serves all those that came before it asked.
func (g *Gate) newest(ctx context.Context) (*access.State, error) {
	came := g.monotonic()
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if g.confirmed.asked > came {
		return g.confirmed.rules, nil
	}
	now := confirmed{rules: g.rules(), asked: g.monotonic()}
	switch answer, err := g.ask(ctx); {
	case err != nil:
		return nil, err
	case answer.GetRevision() != now.rules.Revision():
		return nil, errLags
	}
	g.confirmed = now
	return now.rules, nil
}

// ask asks the leader, in the name of this server, for the mode and the revision of the rules.
func (g *Gate) ask(ctx context.Context) (*api.AccessResponse, error) {
	return g.cfg.Ask(context.WithValue(authn.WithCaller(ctx, authn.Local(g.cfg.Server)), needKey{}, access.Need{}))
}

// Remind logs again and again that a server that other machines can reach at an address has no rules,
// while a leader is known, until ctx ends.
func (g *Gate) Remind(ctx context.Context, log *slog.Logger, listen net.Addr, leader func() uint64) {
	said, last := access.Closed, time.Time{}
	for ctx.Err() == nil {
		mode := g.Mode()
		if leader() != 0 && (mode != said || time.Since(last) >= remindEvery) {
			said, last = mode, time.Now()
			switch mode {
			case access.Open:
				log.Warn("anyone who can reach this server may do everything, because the cluster has no access rules; create them with conclave access init", "listen", listen)
			case access.Unset:
				log.Warn(onSocketOnly+": "+createRules, "listen", listen)
			}
		}
		_ = wait.For(ctx, lookEvery)
	}
}
