package admission

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
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
	// confirmedFor is how long a server relies on the leader's word that its rules are in force.
	confirmedFor = time.Second
)

// noRulesYet is the answer to callers on other machines while there are no rules.
const noRulesYet = "this cluster has no rules of access yet, and answers callers on its own machines only: run conclave access init on the host of a server, or start the servers with --access open"

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
	if err := g.confirm(ctx, &g.unruled, func(answer *api.AccessResponse) bool { return answer.GetMode() == access.Unset.String() }); err != nil {
		return err
	}
	return status.Error(codes.PermissionDenied, noRulesYet)
}

// confirm asks the leader whether what the server knows of the rules is still true, unless
// the leader confirmed it a moment ago, which is recorded in at. If it is no longer true, the
// caller has to try again.
func (g *Gate) confirm(ctx context.Context, at *atomic.Int64, still func(*api.AccessResponse) bool) error {
	if last := at.Load(); last != 0 && g.monotonic()-last <= int64(confirmedFor) {
		return nil
	}
	ctx = context.WithValue(authn.WithCaller(ctx, authn.Local(g.cfg.Server)), needKey{}, access.Need{})
	answer, err := g.cfg.Ask(ctx)
	switch {
	case err != nil:
		return err
	case !still(answer):
		return status.Error(codes.Unavailable, "this server does not know the rules of access yet; try again")
	}
	at.Store(g.monotonic())
	return nil
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
				log.Warn("refusing all callers except those on the admin socket, because the cluster has no access rules; create them with conclave access init, or start the servers with --access open", "listen", listen)
			}
		}
		_ = wait.For(ctx, lookEvery)
	}
}
