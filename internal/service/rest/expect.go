package rest

import (
	"net/http"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
)

// getExpected serves GET /v1/expect.
func (h *Handler) getExpected(r *http.Request) (any, error) {
	p := newParameters(r)
	return answered(r, p, h.server.Expected, &api.ExpectedRequest{Stale: p.truth("stale")}, jsonform.ExpectationsOf)
}

type expectBody struct {
	jsonform.ResourceName
	Every  jsonform.Duration `json:"every"`
	Remove bool              `json:"remove"`
}

// postExpect serves POST /v1/expect.
func (h *Handler) postExpect(r *http.Request, body *expectBody) (any, error) {
	if (body.Lock == "") == (body.Election == "") {
		return nil, malformed("name: set lock or election to it, one of the two")
	}
	req := &api.ExpectRequest{Name: body.Lock, EveryNs: int64(body.Every), Remove: body.Remove}
	if body.Election != "" {
		req.Class, req.Name = api.Class_CLASS_ELECTION, body.Election
	}
	_, err := h.server.Expect(r.Context(), req)
	return body, err
}
