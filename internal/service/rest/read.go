package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
)

// defaultDeadline is how long a call that does not wait may take.
const defaultDeadline = 10 * time.Second

// getLocks serves GET /v1/locks.
func (h *Handler) getLocks(r *http.Request) (any, error) {
	q, req := listRequest(r, api.Class_CLASS_LOCK)
	return answered(r, q, h.server.List, req, jsonform.LocksOf)
}

// getElections serves GET /v1/elections.
func (h *Handler) getElections(r *http.Request) (any, error) {
	q, req := listRequest(r, api.Class_CLASS_ELECTION)
	return answered(r, q, h.server.List, req, jsonform.ElectionsOf)
}

func listRequest(r *http.Request, class api.Class) (*parameters, *api.ListRequest) {
	q := newParameters(r)
	return q, &api.ListRequest{
		Class: class, Prefix: q.text("prefix"), After: q.text("after"),
		Limit: q.number("limit"), Waiters: q.number("waiters"), Stale: q.truth("stale"),
		Order: q.order("order"),
	}
}

// getWhy returns the function that explains a resource of a class.
func (h *Handler) getWhy(class api.Class) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		q := newParameters(r)
		req := &api.ExplainRequest{Class: class, Name: r.PathValue("name"), Waiters: q.number("waiters"), Stale: q.truth("stale")}
		return answered(r, q, h.server.Explain, req, jsonform.ExplanationOf)
	}
}

func (h *Handler) getWaits(r *http.Request) (any, error) {
	q := newParameters(r)
	req := &api.WaitsRequest{Limit: q.number("limit"), Stale: q.truth("stale")}
	return answered(r, q, h.server.Waits, req, jsonform.WaitsOf)
}

func (h *Handler) getSessions(r *http.Request) (any, error) {
	q := newParameters(r)
	req := &api.SessionsRequest{After: q.sessionID("after"), Limit: q.number("limit"), Stale: q.truth("stale")}
	return answered(r, q, h.server.Sessions, req, jsonform.SessionsOf)
}

func (h *Handler) getStatus(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), defaultDeadline)
	defer cancel()
	st, err := h.server.OwnStatus(ctx)
	if err != nil {
		return nil, err
	}
	return jsonform.StatusOf(st), nil
}

func (h *Handler) getMembers(r *http.Request) (any, error) {
	return answered(r, newParameters(r), h.server.Members, &api.MembersRequest{}, jsonform.MembersOf)
}

// getAudit serves GET /v1/audit.
func (h *Handler) getAudit(r *http.Request) (any, error) {
	p := newParameters(r)
	req := &api.AuditLogRequest{
		After: uint64(p.number("after")), Stale: p.truth("stale"), Actor: p.text("actor"), Kind: p.text("kind"), NamePrefix: p.text("name"),
	}
	if since := p.duration("since", 0, 100*365*24*time.Hour); since != 0 {
		req.SinceUnixNs = time.Now().Add(-since).UnixNano()
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	lines, err := h.server.AuditLines(r.Context(), req)
	if lines == nil {
		lines = []jsonform.AuditRecord{} // in JSON a list
	}
	return struct {
		Records []jsonform.AuditRecord `json:"records"`
	}{lines}, err
}
