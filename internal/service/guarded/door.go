// Package guarded serves the locks under an algorithm at a server. Homes, which keep the sessions
// of their clients by themselves, decide about them, and not the log. So a server asks all homes to list such
// locks, to explain them, to revoke them, to end sessions and to change the rules of access.
//
// Door.RouteOf decides which requests that concerns. A request for a name under agreement passes
// nothing else of this package.
package guarded

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// Config sets up a Door.
type Config struct {
	// Server is the id of this server.
	Server  uint64
	Node    *node.Node
	Forward *forward.Forwarder
	// Decide has the log of this server, which leads, decide about a request.
	Decide func(context.Context, *api.Request) (*api.Reply, error)
	// Status returns the status of this server.
	Status func(context.Context) (*api.StatusResponse, error)
}

// Door is how a server reaches the homes, its own included.
type Door struct{ cfg Config }

// New returns the door of a server.
func New(cfg Config) *Door { return &Door{cfg: cfg} }

// Route says who carries out a request of a session.
type Route uint8

const (
	// ByLog means the log of the leader.
	ByLog Route = iota
	// AtHome means the home of the session, which the request names.
	AtHome
	// ByHomes means the leader, which asks the homes: the request revokes a lock that an
	// algorithm guards. Only the leader knows that for certain.
	ByHomes
	// ForLeader means this server as a home: the leader asks it to revoke a lock.
	ForLeader
)

// RouteOf returns who carries out a request, as far as this server knows.
func (d *Door) RouteOf(ctx context.Context, req *api.Request) Route {
	switch revoke := req.GetRevoke(); {
	case revoke == nil && req.GetHome() == 0:
		return ByLog
	case revoke == nil:
		return AtHome
	case req.GetHome() == d.cfg.Server && authn.IsForwarded(ctx):
		return ForLeader
	case revoke.GetClass() == api.Class_CLASS_LOCK && d.guards(ctx, revoke.GetName()):
		return ByHomes
	}
	return ByLog
}

// guards reports whether an algorithm guards a name.
func (d *Door) guards(ctx context.Context, name string) (guarded bool) {
	_ = d.cfg.Node.View(ctx, func(r *replica.Replica) { // fails if the server is stopping: then nothing is guarded
		g := r.Registry().Guarded().GuardOf(name)
		guarded = g != nil && g.Use.Guarded()
	})
	return guarded
}

// guardsUnder reports whether an algorithm guards names that start with a prefix and that the caller may
// read. Others are not told which prefixes are guarded.
func (d *Door) guardsUnder(ctx context.Context, prefix string) (guarded bool) {
	rules := d.cfg.Node.Rules()
	who, err := authn.CallerOf(ctx)
	reads := func(prefix string) bool {
		return rules.Mode() != access.Closed || err == nil && rules.Rights(who.Principal).Somewhere(access.Read, access.Lock, prefix)
	}
	_ = d.cfg.Node.View(ctx, func(r *replica.Replica) { // fails if the server is stopping: then nothing is listed
		guarded = slices.ContainsFunc(r.Registry().Guarded().Guards, func(g view.Guard) bool {
			switch {
			case !g.Use.Guarded():
				return false
			case strings.HasPrefix(g.Prefix, prefix):
				return reads(g.Prefix)
			}
			return strings.HasPrefix(prefix, g.Prefix) && reads(prefix)
		})
	})
	return guarded
}

// AnyHome returns a server that can be the home of a session for guarded locks: this one, or
// a known member of the view.
func (d *Door) AnyHome(ctx context.Context) (home uint64, err error) {
	err = d.cfg.Node.View(ctx, func(r *replica.Replica) {
		for _, m := range r.Registry().Guarded().Members {
			if home == 0 || m.Server == d.cfg.Server {
				home = m.Server
			}
		}
	})
	if err == nil && home == 0 {
		err = status.Error(codes.InvalidArgument, "home: no server takes part: no algorithm guards a lock, or the servers are about to begin")
	}
	return home, err
}

// requireHome returns an error unless this server takes part in the view. After a restart, clients of
// its former seat may hold locks that this process does not know.
func (d *Door) requireHome() error {
	if !d.cfg.Node.Home().IsMember() {
		return status.Errorf(codes.Unavailable, "server %d takes no part in the view", d.cfg.Server)
	}
	return nil
}
