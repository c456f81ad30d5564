package admin

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/alike"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/settings"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// Settings shows the settings of the cluster, or changes one. A change is answered when the leader and all
// homes go by it.
func (a *Acts) Settings(ctx context.Context, req *api.SettingsRequest) (*api.SettingsResponse, error) {
	if req.GetHome() && authn.IsForwarded(ctx) { // asked by the leader
		return &api.SettingsResponse{Revision: a.cfg.Node.Home().SettingsRevision()}, nil
	}
	changes := req.GetName() != "" || req.GetValue() != ""
	if changes {
		if problem := settings.Check(req.GetName(), req.GetValue()); problem != "" {
			return nil, status.Error(codes.InvalidArgument, problem)
		}
	}
	ctx, by, err := act.OriginOf(ctx)
	if err != nil {
		return nil, err
	}
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return nil, err
	}
	return forward.OnLeaderInTime(ctx, a.cfg.Forward, func(ctx context.Context) (*api.SettingsResponse, error) {
		if changes {
			if err := a.set(ctx, registry.Command{Op: registry.OpSet, Name: req.GetName(), Value: req.GetValue(), By: &by}); err != nil {
				return nil, err
			}
		}
		state, err := a.cfg.Node.Read(ctx)
		if err != nil {
			return nil, err
		}
		answer := &api.SettingsResponse{Revision: state.Settings().Revision()}
		for _, s := range state.Settings().List() {
			answer.Settings = append(answer.Settings, &api.Setting{Name: s.Name, Value: s.Value, Values: s.Values, Text: s.Text})
		}
		if changes && state.Settings().NFC() {
			a.listOtherForms(ctx, state, who, answer)
		}
		return answer, nil
	}, forward.Asking(api.ConclaveClient.Settings, req))
}

// set changes a setting at this server, which leads.
func (a *Acts) set(ctx context.Context, c registry.Command) error {
	if err := act.CarryOut(ctx, a.cfg.Node, c); err != nil {
		return err
	}
	return a.cfg.Guarded.AfterSetting(ctx)
}

// maxOthers bounds the names in other forms that an answer lists.
const maxOthers = 10

// listOtherForms adds to an answer the names in use that are not in the form NFC. It lists those that the
// caller may read.
func (a *Acts) listOtherForms(ctx context.Context, state node.State, who stream.Caller, answer *api.SettingsResponse) {
	kinds := []string{registry.Lock: "lock", registry.Election: "election", registry.View: "guard"}
	add := func(class registry.Class, name string) {
		if alike.IsNFC(name) {
			return
		}
		answer.OtherForms++
		if len(answer.Others) > 10*maxOthers {
			first(answer)
		}
		if class == registry.View || state.Rules().Allows(who.Principal, access.Read, access.Class(class), name) {
			answer.Others = append(answer.Others, &api.NameInUse{Kind: kinds[class], Name: name})
		}
	}
	for _, class := range []registry.Class{registry.Lock, registry.Election} {
		state.Visit(class, "", "", 0, func(res *registry.Resource) bool {
			add(class, res.Name)
			return true
		})
	}
	a.cfg.Guarded.EachHold(ctx, func(res *api.Resource) { add(registry.Lock, res.GetName()) })
	for _, g := range state.Guarded().Guards {
		add(registry.View, g.Prefix)
	}
	first(answer)
}

// first keeps the first names of an answer.
func first(answer *api.SettingsResponse) {
	slices.SortStableFunc(answer.Others, func(x, y *api.NameInUse) int { return cmp.Compare(x.GetName(), y.GetName()) })
	answer.Others = answer.Others[:min(len(answer.Others), maxOthers)]
}
