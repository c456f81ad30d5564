package server

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/access"
	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/convert"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
)

// Access answers who the caller is and who may do what, or changes the access rules.
func (s service) Access(ctx context.Context, req *api.AccessRequest) (*api.AccessResponse, error) {
	who, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetWhoAmI() != nil {
		answer := s.whoAmI(who)
		if passedOn(ctx) { // the leader asks by which rules this home goes
			answer.Revision = s.node.HomeRevision()
		}
		return answer, nil
	}
	answerTo, err := s.answerOf(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	var command *registry.Command
	if change := req.GetChange(); change != nil && !change.GetDryRun() {
		if command, err = s.changeCommand(ctx, who, change); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		ctx = metadata.AppendToOutgoingContext(ctx, requestHeader, string(command.Origin.Request[:]))
	}
	return onLeaderInTime(ctx, s.Server, func(ctx context.Context) (*api.AccessResponse, error) {
		if err := s.changeRules(ctx, command); err != nil {
			return nil, err
		}
		state, err := s.node.Read(ctx)
		if err != nil {
			return nil, err
		}
		answer := describeRules(state.Rules(), state.Mode(), who)
		return answer, answerTo(ctx, state, who, answer)
	}, asking(api.ConclaveClient.Access, req))
}

// changeRules carries out a change of the rules, if there is one, at the leader.
func (s *Server) changeRules(ctx context.Context, command *registry.Command) error {
	if command == nil {
		return nil
	}
	if err := s.anonymousAtHomes(ctx, command.Change); err != nil {
		return err
	}
	if err := s.carryOutAlone(ctx, *command); err != nil {
		return s.conflicting(ctx, command.Change, err)
	}
	if err := s.awaitHomes(ctx); err != nil {
		return err
	}
	if command.Change.EndSessions {
		return s.endAnonymousAtHomes(ctx)
	}
	return nil
}

func (s *Server) whoAmI(who caller) *api.AccessResponse {
	return describeRules(s.rules(), s.node.AccessMode(), who)
}

// describeRules returns the part that all answers have.
func describeRules(rules *access.State, mode access.Mode, who caller) *api.AccessResponse {
	return &api.AccessResponse{
		Principal: who.Principal, Via: who.Via, Remote: who.Remote,
		Roles: rules.Roles(who.Principal), Mode: mode.String(), Revision: rules.Revision(),
	}
}

// answering fills in the answer to a request.
type answering func(ctx context.Context, state node.State, who caller, answer *api.AccessResponse) error

// answerOf returns the function that fills in the answer to a request.
func (s *Server) answerOf(req *api.AccessRequest) (answering, error) {
	switch ask := req.GetAsk().(type) {
	case *api.AccessRequest_Show:
		return func(_ context.Context, state node.State, _ caller, answer *api.AccessResponse) error {
			listRules(state.Rules(), answer)
			return nil
		}, nil
	case *api.AccessRequest_Change:
		return s.answerChange(ask.Change)
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
	class, problem := convert.Class(check.GetClass())
	if verb.OnNames() && problem == "" {
		problem = registry.ValidateName(check.GetName())
	}
	if problem != "" {
		return nil, errors.New(problem)
	}
	return func(ctx context.Context, state node.State, who caller, answer *api.AccessResponse) error {
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

// whoAmIJSON is the caller as the servers see it.
type whoAmIJSON struct {
	Principal string   `json:"principal"`
	Via       string   `json:"via"`
	Remote    string   `json:"remote"`
	Roles     []string `json:"roles"`
}

func (s service) getWhoAmI(r *http.Request) (any, error) {
	if err := newParameters(r).check(); err != nil {
		return nil, err
	}
	who, err := callerOf(r.Context())
	if err != nil {
		return nil, err
	}
	answer := s.whoAmI(who)
	return whoAmIJSON{answer.GetPrincipal(), answer.GetVia(), answer.GetRemote(), append([]string{}, answer.GetRoles()...)}, nil
}
