package server

import (
	"net/http"

	"github.com/conclave-io/conclave/service/access"
	"github.com/conclave-io/conclave/service/api"
)

// verdictJSON says whether the rules allow somebody something.
type verdictJSON struct {
	Allowed bool     `json:"allowed"`
	Why     string   `json:"why"`
	Roles   []string `json:"roles"`
}

// getCheck serves GET /v1/access/check.
func (s service) getCheck(r *http.Request) (any, error) {
	p := newParameters(r)
	check := &api.CheckAccess{Verb: p.text("verb"), Name: p.text("lock"), Principal: p.text("principal")}
	if p.given("election") {
		check.Class, check.Name = api.Class_CLASS_ELECTION, p.text("election")
	}
	if p.given("lock") && p.given("election") {
		p.fail("lock, election: cannot be combined; set one of them")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if check.GetPrincipal() != "" {
		who, err := callerOf(r.Context())
		if err == nil {
			err = s.permit(r.Context(), who, needs(access.AccessRead))
		}
		if err != nil {
			return nil, err
		}
	}
	answer, err := s.Access(r.Context(), &api.AccessRequest{Ask: &api.AccessRequest_Check{Check: check}})
	if err != nil {
		return nil, err
	}
	return verdictJSON{answer.GetAllowed(), answer.GetWhy(), append([]string{}, answer.GetRoles()...)}, nil
}
