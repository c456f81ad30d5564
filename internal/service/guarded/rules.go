package guarded

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// A change of the rules also concerns the sessions and holds that homes keep by themselves. No
// log entry knows of them, so the leader asks the homes.

// AfterRules makes all homes go by a change of the rules that was made.
func (d *Door) AfterRules(ctx context.Context, change *access.Change) error {
	if err := d.awaitHomes(ctx, byRules); err != nil || !change.EndSessions {
		return err
	}
	return d.endAnonymousAtHomes(ctx)
}

// AfterSetting makes all homes go by a change of the settings that was made.
func (d *Door) AfterSetting(ctx context.Context) error { return d.awaitHomes(ctx, bySettings) }

// EachHold calls see for the guarded locks that clients of homes hold or wait for. A member
// that does not answer is left out.
func (d *Door) EachHold(ctx context.Context, see func(*api.Resource)) {
	ctx = d.itself(ctx)
	for after, more := "", true; more; {
		page := new(api.ListResponse)
		d.listAtHomes(ctx, &api.ListRequest{After: after, Limit: stream.WatchPage}, page)
		for _, res := range page.GetResources() {
			after = res.GetName()
			see(res)
		}
		more = page.GetMore() && len(page.GetResources()) > 0
	}
}

// anonymousSessions returns the sessions of anonymous programs at all homes.
func (d *Door) anonymousSessions(ctx context.Context) (found []*api.Session) {
	ctx = d.itself(ctx)
	var after registry.SessionID
	for more := true; more; {
		page := new(api.SessionsResponse)
		d.sessionsAtHomes(ctx, &api.SessionsRequest{After: after[:], Limit: stream.WatchPage}, after, page)
		for _, one := range page.GetSessions() {
			after = registry.SessionID(one.GetId())
			if one.GetOwner() == "" && one.GetHome() != 0 && !one.GetLeaving() {
				found = append(found, one)
			}
		}
		more = page.GetMore() && len(page.GetSessions()) > 0
	}
	return found
}

// BeforeRules refuses a change that turns rules on while homes keep sessions of anonymous
// programs, unless it ends them.
func (d *Door) BeforeRules(ctx context.Context, change *access.Change) error {
	if change.EndSessions || d.cfg.Node.Rules().Mode() == access.Closed || !closes(change) {
		return nil
	}
	sessions := d.anonymousSessions(ctx)
	if len(sessions) == 0 {
		return nil
	}
	e := &access.AnonymousError{Sessions: len(sessions)}
	for _, one := range sessions[:min(3, len(sessions))] {
		e.Some = append(e.Some, fmt.Sprintf("%.10s, process %d (%q) on %q", registry.SessionID(one.GetId()), one.GetPid(), one.GetProgram(), one.GetHost()))
	}
	return status.Error(codes.InvalidArgument, e.Error())
}

// closes reports whether a change turns rules on, if they are off.
func closes(change *access.Change) bool {
	for i := range change.Edits {
		if e := &change.Edits[i]; e.Kind == access.SetMode && e.Mode == access.Closed {
			return true
		}
	}
	return false
}

// endAnonymousAtHomes ends the sessions of anonymous programs at all homes, after rules were
// turned on: holders are asked to leave, as by EndSession.
func (d *Door) endAnonymousAtHomes(ctx context.Context) error {
	if d.cfg.Node.Rules().Mode() != access.Closed {
		return nil
	}
	for _, one := range d.anonymousSessions(ctx) {
		command := registry.Command{
			Op: registry.OpEnd, Session: registry.SessionID(one.GetId()), Value: "rules of access are turned on",
			By: &registry.Origin{Actor: authn.Local(d.cfg.Server).Principal, Via: "local"},
		}
		unknown := status.Error(codes.NotFound, "the session has ended")
		_, err := d.endSessionAtHome(d.itself(ctx), &api.EndSessionRequest{Id: one.GetId(), Reason: command.Value}, &command, unknown)
		if err != nil && status.Code(err) != codes.NotFound {
			return status.Errorf(codes.Unavailable, "the rules are turned on, but a session at server %d was not ended: %s; end it with conclave sessions end", one.GetHome(), api.Reason(err))
		}
	}
	return nil
}

// guide is something of the replicated state that homes go by, with revisions.
type guide struct {
	what string
	// known returns the newest revision, here the one by which the home of this server goes, and ask that
	// of another home.
	known func(node.State) uint64
	here  func(*home.Home) uint64
	ask   func(context.Context, api.ConclaveClient) (uint64, error)
}

var byRules = guide{
	"rules", func(state node.State) uint64 { return state.Rules().Revision() }, (*home.Home).Revision,
	func(ctx context.Context, member api.ConclaveClient) (uint64, error) {
		answer, err := member.Access(ctx, &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{WhoAmI: &api.WhoAmI{}}})
		return answer.GetRevision(), err
	},
}

var bySettings = guide{
	"settings", func(state node.State) uint64 { return state.Settings().Revision() }, (*home.Home).SettingsRevision,
	func(ctx context.Context, member api.ConclaveClient) (uint64, error) {
		answer, err := member.Settings(ctx, &api.SettingsRequest{Home: true})
		return answer.GetRevision(), err
	},
}

// awaitHomes returns once all homes go by what this server, which leads, knows. A home that does not
// answer loses its seat after its lease.
func (d *Door) awaitHomes(ctx context.Context, by guide) error {
	end, stop := d.cfg.Forward.Waiting(ctx)
	defer stop()
	state, err := d.cfg.Node.Read(ctx)
	if err != nil {
		return err
	}
	for wanted := by.known(state); ; {
		late := d.lateHome(end, by, wanted)
		if late == 0 {
			return nil
		}
		if err := wait.For(end, d.cfg.Forward.LookEvery()); err != nil {
			return status.Error(codes.Internal, fmt.Sprintf("the %[1]s are changed, but server %[2]d has not confirmed it: until it has, its clients may get locks under an algorithm by the %[1]s before", by.what, late))
		}
	}
}

// lateHome returns a member that does not go by a revision, or 0.
func (d *Door) lateHome(ctx context.Context, by guide, wanted uint64) uint64 {
	here := func(context.Context) (uint64, error) { return by.here(d.cfg.Node.Home()), nil }
	all := atMembers(d.itself(ctx), d, here, by.ask)
	if at := slices.IndexFunc(all, func(m fromMember[uint64]) bool { return m.err != nil || m.answer < wanted }); at >= 0 {
		return all[at].server
	}
	return 0
}
