package admin

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Access answers who the caller is and who may do what, or changes the access rules.
func (a *Acts) Access(ctx context.Context, req *api.AccessRequest) (*api.AccessResponse, error) {
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetWhoAmI() != nil {
		answer := a.whoAmI(who)
		if authn.IsForwarded(ctx) { // the leader asks by which rules this home goes
			answer.Revision = a.cfg.Node.Home().Revision()
		}
		return answer, nil
	}
	answerTo, err := a.answerOf(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	var command *registry.Command
	if change := req.GetChange(); change != nil && !change.GetDryRun() {
		if ctx, command, err = a.changeCommand(ctx, change); err != nil {
			return nil, err
		}
	}
	return forward.OnLeaderInTime(ctx, a.cfg.Forward, func(ctx context.Context) (*api.AccessResponse, error) {
		if err := a.changeRules(ctx, command); err != nil {
			return nil, err
		}
		state, err := a.cfg.Node.Read(ctx)
		if err != nil {
			return nil, err
		}
		answer := describeRules(state.Rules(), state.Mode(), who)
		return answer, answerTo(ctx, state, who, answer)
	}, forward.Asking(api.ConclaveClient.Access, req))
}

// changeRules carries out a change of the rules, if there is one, at the leader.
func (a *Acts) changeRules(ctx context.Context, command *registry.Command) error {
	if command == nil {
		return nil
	}
	if err := a.cfg.Guarded.BeforeRules(ctx, command.Change); err != nil {
		return err
	}
	if err := act.CarryOut(ctx, a.cfg.Node, *command); err != nil {
		return a.conflicting(ctx, command.Change, err)
	}
	return a.cfg.Guarded.AfterRules(ctx, command.Change)
}

func (a *Acts) whoAmI(who stream.Caller) *api.AccessResponse {
	return describeRules(a.cfg.Node.Rules(), a.cfg.Node.AccessMode(), who)
}

// describeRules returns the part that all answers have.
func describeRules(rules *access.State, mode access.Mode, who stream.Caller) *api.AccessResponse {
	return &api.AccessResponse{
		Principal: who.Principal, Via: who.Via, Remote: who.Remote,
		Roles: rules.Roles(who.Principal), Mode: mode.String(), Revision: rules.Revision(),
	}
}

// answering fills in the answer to a request.
type answering func(ctx context.Context, state node.State, who stream.Caller, answer *api.AccessResponse) error

// answerOf returns the function that fills in the answer to a request.
func (a *Acts) answerOf(req *api.AccessRequest) (answering, error) {
	switch ask := req.GetAsk().(type) {
	case *api.AccessRequest_Show:
		return func(_ context.Context, state node.State, _ stream.Caller, answer *api.AccessResponse) error {
			listRules(state.Rules(), answer)
			return nil
		}, nil
	case *api.AccessRequest_Change:
		return a.answerChange(ask.Change)
	case *api.AccessRequest_Check:
		return answerCheck(ask.Check)
	}
	return nil, errors.New("ask: missing: must be who_am_i, show, check or change")
}

// answerCheck returns the function that answers whether somebody may do something.
func answerCheck(check *api.CheckAccess) (answering, error) {
	verb, err := access.ParseVerb(check.GetVerb())
	if err != nil {
		return nil, err
	}
	if principal := check.GetPrincipal(); principal != "" {
		if err := access.ValidatePrincipal(principal); err != nil {
			return nil, err
		}
	}
	class, problem := stream.ClassFromProto(check.GetClass())
	if verb.OnNames() && problem == "" {
		problem = registry.ValidateName(check.GetName())
	}
	if problem != "" {
		return nil, errors.New(problem)
	}
	return func(ctx context.Context, state node.State, who stream.Caller, answer *api.AccessResponse) error {
		principal, rules := check.GetPrincipal(), state.Rules()
		if principal == "" {
			principal = who.Principal
		}
		why := rules.Explain(principal, verb, access.Class(class), check.GetName())
		answer.Roles, answer.Allowed, answer.Why = rules.Roles(principal), why.Allowed, why.String()
		return nil
	}, nil
}

// listRules adds all rules to an answer, without secrets or their hashes.
func listRules(rules *access.State, answer *api.AccessResponse) {
	for _, role := range rules.AllRoles() {
		listed := &api.Role{Name: role.Name}
		for _, rule := range role.Rules {
			listed.Rules = append(listed.Rules, rule.String())
		}
		answer.RoleList = append(answer.RoleList, listed)
	}
	for _, b := range rules.Bindings() {
		answer.Bindings = append(answer.Bindings, &api.Binding{Who: b.Who, Roles: b.Roles})
	}
	for _, t := range rules.Tokens() {
		answer.Tokens = append(answer.Tokens, &api.Token{Id: t.ID, Name: t.Name, Creator: t.Creator, MadeNs: t.Made, ExpiresNs: t.Expires, Note: t.Note, PeerAddress: t.Peer, Used: t.UID != 0})
	}
	for _, q := range rules.Quotas() {
		answer.Quotas = append(answer.Quotas, &api.Quota{Who: q.Who, Prefix: q.Prefix, Sessions: q.Most.Sessions, Claims: q.Most.Claims, Bytes: q.Most.Bytes, Requests: q.Most.Requests})
	}
	answer.Names = &api.CertificateNames{Names: rules.Names()}
}

// maxDenied bounds the holds listed in the answer to a change.
const maxDenied = 1000

// changeCommand returns the command for a change, and the context for passing the change on.
func (a *Acts) changeCommand(ctx context.Context, sent *api.AccessChange) (context.Context, *registry.Command, error) {
	change, err := changeOfRules(a.cfg.Node.Rules(), sent)
	if err != nil {
		return ctx, nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ctx, by, err := act.OriginOf(ctx)
	return ctx, &registry.Command{Op: registry.OpAccess, By: &by, Change: change}, err
}

// conflicting returns the error of a refused change. An outdated revision has its own code, so
// that a program knows that it has to read the rules again.
func (a *Acts) conflicting(ctx context.Context, change *access.Change, err error) error {
	if status.Code(err) != codes.InvalidArgument || change.Expected == 0 {
		return err
	}
	if state, unread := a.cfg.Node.Read(ctx); unread == nil && state.Rules() != nil && state.Rules().Revision() != change.Expected {
		return status.Error(codes.Aborted, status.Convert(err).Message())
	}
	return err
}

// answerChange returns the function that reports the effect of a change, or of a trial.
func (a *Acts) answerChange(sent *api.AccessChange) (answering, error) {
	if !sent.GetDryRun() {
		return func(ctx context.Context, state node.State, who stream.Caller, answer *api.AccessResponse) error {
			a.listDenied(ctx, state, state.Rules(), who, answer)
			return nil
		}, nil
	}
	change, err := changeOfRules(a.cfg.Node.Rules(), sent)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, state node.State, who stream.Caller, answer *api.AccessResponse) error {
		rules := state.Rules()
		if rules == nil {
			level, _ := state.Level()
			return status.Errorf(codes.InvalidArgument, "level %d: there are rules of access from level %d on: see conclave upgrade status", level, version.Access)
		}
		if err := admission.Denied(rules, who, access.Access, access.Any, ""); err != nil {
			return err
		}
		next, err := rules.Apply(change)
		var conflict *access.ConflictError
		switch {
		case errors.As(err, &conflict):
			return status.Error(codes.Aborted, err.Error())
		case err != nil:
			return status.Error(codes.InvalidArgument, err.Error())
		}
		a.listDenied(ctx, state, next, who, answer)
		return nil
	}, nil
}

// listDenied adds to an answer the present holds that some rules would not grant and that were not
// revoked yet, as far as the caller may read their names now.
func (a *Acts) listDenied(ctx context.Context, state node.State, rules *access.State, who stream.Caller, answer *api.AccessResponse) {
	if rules.Mode() != access.Closed {
		return
	}
	for _, class := range []registry.Class{registry.Lock, registry.Election} {
		for after, more := "", true; more; {
			var page []registry.Resource
			page, more = state.List(class, "", after, stream.WatchPage, 0)
			for i := range page {
				after = page[i].Name
				addDenied(&page[i], rules, state.Rules(), who, answer)
			}
		}
	}
	a.cfg.Guarded.EachHold(ctx, func(res *api.Resource) {
		held := registry.Resource{Class: registry.Lock, Name: res.GetName()}
		for _, h := range res.GetHolders() {
			held.Holders = append(held.Holders, registry.Holder{Session: registry.SessionID(h.GetSession()), Owner: h.GetOwner(), Fence: h.GetFence(), Revoked: h.GetRevoked()})
		}
		addDenied(&held, rules, state.Rules(), who, answer)
	})
}

func addDenied(res *registry.Resource, rules, now *access.State, who stream.Caller, answer *api.AccessResponse) {
	for i := range res.Holders {
		h := &res.Holders[i]
		if rules.Allows(h.Owner, access.Hold, access.Class(res.Class), res.Name) {
			continue
		}
		answer.Denied++
		if !h.Revoked && len(answer.DeniedHolds) < maxDenied && now.Allows(who.Principal, access.Read, access.Class(res.Class), res.Name) {
			answer.DeniedHolds = append(answer.DeniedHolds, &api.DeniedHold{
				Class: api.Class(res.Class), Name: res.Name, Fence: h.Fence, Owner: h.Owner, Session: h.Session[:],
			})
		}
	}
}

// changeOfRules translates a change of the rules known to this server.
func changeOfRules(rules *access.State, sent *api.AccessChange) (*access.Change, error) {
	change := &access.Change{Expected: sent.GetExpected(), Force: sent.GetForce(), EndSessions: sent.GetEndSessions()}
	for _, edit := range sent.GetEdits() {
		e, err := editOf(edit)
		if put := edit.GetPutToken(); put != nil && len(put.GetHash()) == 0 {
			e, err = redated(rules, sent.GetExpected(), put)
		}
		if err != nil {
			return nil, err
		}
		change.Edits = append(change.Edits, e)
	}
	return change, change.Validate()
}

func editOf(edit *api.AccessEdit) (access.Edit, error) {
	switch e := edit.GetEdit().(type) {
	case *api.AccessEdit_PutRole:
		role := access.Role{Name: e.PutRole.GetName()}
		for _, text := range e.PutRole.GetRules() {
			rule, err := access.ParseRule(text)
			if err != nil {
				return access.Edit{}, err
			}
			role.Rules = append(role.Rules, rule)
		}
		return access.Edit{Kind: access.PutRole, Role: role}, nil
	case *api.AccessEdit_DropRole:
		return access.Edit{Kind: access.DropRole, Role: access.Role{Name: e.DropRole}}, nil
	case *api.AccessEdit_PutBinding:
		return access.Edit{Kind: access.PutBinding, Binding: access.Binding{Who: e.PutBinding.GetWho(), Roles: e.PutBinding.GetRoles()}}, nil
	case *api.AccessEdit_DropBinding:
		return access.Edit{Kind: access.DropBinding, Binding: access.Binding{Who: e.DropBinding}}, nil
	case *api.AccessEdit_PutToken:
		return tokenEdit(e.PutToken)
	case *api.AccessEdit_DropToken:
		return access.Edit{Kind: access.DropToken, Token: access.Token{ID: e.DropToken}}, nil
	case *api.AccessEdit_PutQuota:
		return access.Edit{Kind: access.PutQuota, Quota: quotaOf(e.PutQuota)}, nil
	case *api.AccessEdit_DropQuota:
		return access.Edit{Kind: access.DropQuota, Quota: quotaOf(e.DropQuota)}, nil
	case *api.AccessEdit_Mode:
		for _, mode := range []access.Mode{access.Open, access.Closed} {
			if mode.String() == e.Mode {
				return access.Edit{Kind: access.SetMode, Mode: mode}, nil
			}
		}
		return access.Edit{}, &access.InvalidError{What: "mode", Value: e.Mode, Expected: "must be open or closed"}
	case *api.AccessEdit_Names:
		return access.Edit{Kind: access.SetNames, Names: e.Names.GetNames()}, nil
	}
	return access.Edit{}, errors.New("edits: unknown kind of edit; upgrade this server")
}

func tokenEdit(t *api.Token) (access.Edit, error) {
	token := access.Token{ID: t.GetId(), Name: t.GetName(), Expires: t.GetExpiresNs(), Note: t.GetNote(), Peer: t.GetPeerAddress()}
	if len(t.GetHash()) != len(token.Hash) {
		return access.Edit{}, &access.InvalidError{What: "token", Value: t.GetId(), Expected: "must have the SHA-256 of its secret"}
	}
	copy(token.Hash[:], t.GetHash())
	return access.Edit{Kind: access.PutToken, Token: token}, nil
}

// redated returns the edit that changes a token but keeps its secret. The change must name the
// revision at which the token was read: otherwise a token revoked meanwhile could come back.
func redated(rules *access.State, expected uint64, t *api.Token) (access.Edit, error) {
	record, found := rules.Token(t.GetId())
	switch {
	case expected == 0:
		return access.Edit{}, errors.New("expected: missing: a token without a hash can be changed only at the revision at which it was read")
	case !found:
		return access.Edit{}, &access.InvalidError{What: "token", Value: t.GetId(), Expected: "must be the id of a token, or have the SHA-256 of its secret"}
	}
	record.Name, record.Expires, record.Note = t.GetName(), t.GetExpiresNs(), t.GetNote()
	return access.Edit{Kind: access.PutToken, Token: record}, nil
}

func quotaOf(q *api.Quota) access.Quota {
	return access.Quota{Who: q.GetWho(), Prefix: q.GetPrefix(), Most: access.Amount{Sessions: q.GetSessions(), Claims: q.GetClaims(), Bytes: q.GetBytes(), Requests: q.GetRequests()}}
}
