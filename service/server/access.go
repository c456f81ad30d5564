package server

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
)

// Access tells who calls, and who may do what.
func (s service) Access(ctx context.Context, req *api.AccessRequest) (*api.AccessResponse, error) {
	defer s.metrics.call("access", time.Now())
	who, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetWhoAmI() == nil {
		return nil, status.Error(codes.Unimplemented, "the cluster has no rules yet")
	}
	return s.whoAmI(who), nil
}

func (s *Server) whoAmI(who caller) *api.AccessResponse {
	rules := s.rules()
	return &api.AccessResponse{
		Principal: who.Principal, Via: who.Via, Remote: who.Remote,
		Roles: rules.Roles(who.Principal), Mode: rules.Mode().String(), Revision: rules.Revision(),
	}
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
