package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/access"
	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/convert"
	"github.com/conclave-io/conclave/service/registry"
)

// Access tells who calls, and who may do what, or changes that.
func (s service) Access(ctx context.Context, req *api.AccessRequest) (*api.AccessResponse, error) {
	defer s.metrics.call("access", time.Now())
	return s.access(ctx, req)
}

func (s *Server) access(ctx context.Context, req *api.AccessRequest) (*api.AccessResponse, error) {
	who, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetWhoAmI() != nil {
		return s.whoAmI(who), nil
	}
	answerTo, err := answerOf(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	command := registry.Command{Op: registry.OpAccess, Origin: who.Origin()}
	if change := req.GetChange(); change != nil {
		if command.Change, err = changeOfRules(change); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		command.Origin.Request = requestOf(ctx, who)
		ctx = metadata.AppendToOutgoingContext(ctx, requestHeader, string(command.Origin.Request[:]))
	}
	ctx, cancel := deadlineFor(ctx, false)
	defer cancel()
	return onLeader(ctx, s, func(ctx context.Context) (*api.AccessResponse, error) {
		if command.Change != nil {
			if err := s.carryOutAlone(ctx, command); err != nil {
				return nil, err
			}
		}
		state, err := s.node.Read(ctx)
		if err != nil {
			return nil, err
		}
		answer := describeRules(state.Rules(), who)
		answerTo(state.Rules(), who, answer)
		return answer, nil
	}, func(ctx context.Context, leader api.ConclaveClient) (*api.AccessResponse, error) {
		return leader.Access(ctx, req)
	})
}

func (s *Server) whoAmI(who caller) *api.AccessResponse { return describeRules(s.rules(), who) }

// describeRules returns what every answer has.
func describeRules(rules *access.State, who caller) *api.AccessResponse {
	return &api.AccessResponse{
		Principal: who.Principal, Via: who.Via, Remote: who.Remote,
		Roles: rules.Roles(who.Principal), Mode: rules.Mode().String(), Revision: rules.Revision(),
	}
}

// answerOf returns what fills in the answer to a request.
func answerOf(req *api.AccessRequest) (func(*access.State, caller, *api.AccessResponse), error) {
	switch ask := req.GetAsk().(type) {
	case *api.AccessRequest_Show:
		return func(rules *access.State, _ caller, answer *api.AccessResponse) { listRules(rules, answer) }, nil
	case *api.AccessRequest_Change:
		return func(*access.State, caller, *api.AccessResponse) {}, nil
	case *api.AccessRequest_Check:
		return answerCheck(ask.Check)
	}
	return nil, errors.New("ask: missing: must be who_am_i, show, check or change")
}

// answerCheck returns what says whether somebody may do something.
func answerCheck(check *api.CheckAccess) (func(*access.State, caller, *api.AccessResponse), error) {
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
	return func(rules *access.State, who caller, answer *api.AccessResponse) {
		principal := check.GetPrincipal()
		if principal == "" {
			principal = who.Principal
		}
		why := rules.Explain(principal, verb, access.Class(class), check.GetName())
		answer.Roles, answer.Allowed, answer.Why = rules.Roles(principal), why.Allowed, why.String()
	}, nil
}

// listRules puts all rules into an answer, and nothing that proves anybody.
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
		answer.Tokens = append(answer.Tokens, &api.Token{Id: t.ID, Name: t.Name, Creator: t.Creator, MadeNs: t.Made, ExpiresNs: t.Expires, Note: t.Note})
	}
	for _, q := range rules.Quotas() {
		answer.Quotas = append(answer.Quotas, &api.Quota{Who: q.Who, Prefix: q.Prefix, Sessions: q.Most.Sessions, Claims: q.Most.Claims, Bytes: q.Most.Bytes})
	}
	answer.Names = &api.CertificateNames{Names: rules.Names()}
}

// changeOfRules translates a change.
func changeOfRules(sent *api.AccessChange) (*access.Change, error) {
	change := &access.Change{Expected: sent.GetExpected(), Force: sent.GetForce()}
	for _, edit := range sent.GetEdits() {
		e, err := editOf(edit)
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
	return access.Edit{}, errors.New("edits: one of them is of a kind that this server does not know")
}

func tokenEdit(t *api.Token) (access.Edit, error) {
	token := access.Token{ID: t.GetId(), Name: t.GetName(), Expires: t.GetExpiresNs(), Note: t.GetNote()}
	if len(t.GetHash()) != len(token.Hash) {
		return access.Edit{}, &access.InvalidError{What: "token", Value: t.GetId(), Expected: "must have the SHA-256 of its secret"}
	}
	copy(token.Hash[:], t.GetHash())
	return access.Edit{Kind: access.PutToken, Token: token}, nil
}

func quotaOf(q *api.Quota) access.Quota {
	return access.Quota{Who: q.GetWho(), Prefix: q.GetPrefix(), Most: access.Amount{Sessions: q.GetSessions(), Claims: q.GetClaims(), Bytes: q.GetBytes()}}
}

// whoAmIJSON is the caller as the servers know it.
type whoAmIJSON struct {
	Principal string   `json:"principal"`
	Via       string   `json:"via"`
	Remote    string   `json:"remote"`
	Roles     []string `json:"roles"`
}

func (s *Server) getWhoAmI(r *http.Request) (any, error) {
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
