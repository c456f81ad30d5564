package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/conclave-io/conclave/service/api"
)

func (s service) getLocks(r *http.Request) (any, error) {
	return s.listJSON(r, api.Class_CLASS_LOCK, "locks")
}

func (s service) getElections(r *http.Request) (any, error) {
	return s.listJSON(r, api.Class_CLASS_ELECTION, "elections")
}

func (s service) listJSON(r *http.Request, class api.Class, key string) (any, error) {
	q := newParameters(r)
	req := &api.ListRequest{
		Class: class, Prefix: q.text("prefix"), After: q.text("after"),
		Limit: q.number("limit"), Waiters: q.number("waiters"), Stale: q.truth("stale"),
		Order: q.order("order"),
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	page, err := s.List(r.Context(), req)
	if err != nil {
		return nil, err
	}
	resources := make([]resourceJSON, 0, len(page.GetResources()))
	for _, res := range page.GetResources() {
		resources = append(resources, resourceToJSON(res))
	}
	answer := map[string]any{key: resources, "more": page.GetMore()}
	if silent := page.GetSilent(); len(silent) > 0 {
		answer["silent"] = silent
	}
	return answer, nil
}

func (s service) explainLock(r *http.Request) (any, error) {
	return s.explainJSON(r, api.Class_CLASS_LOCK)
}

func (s service) explainElection(r *http.Request) (any, error) {
	return s.explainJSON(r, api.Class_CLASS_ELECTION)
}

func (s service) explainJSON(r *http.Request, class api.Class) (any, error) {
	q := newParameters(r)
	req := &api.ExplainRequest{Class: class, Name: r.PathValue("name"), Waiters: q.number("waiters"), Stale: q.truth("stale")}
	if err := q.check(); err != nil {
		return nil, err
	}
	answer, err := s.Explain(r.Context(), req)
	if err != nil {
		return nil, err
	}
	return explanationToJSON(answer), nil
}

func (s service) getWaits(r *http.Request) (any, error) {
	q := newParameters(r)
	req := &api.WaitsRequest{Limit: q.number("limit"), Stale: q.truth("stale")}
	if err := q.check(); err != nil {
		return nil, err
	}
	page, err := s.Waits(r.Context(), req)
	if err != nil {
		return nil, err
	}
	waits := make([]waitingJSON, 0, len(page.GetWaits()))
	for _, one := range page.GetWaits() {
		waits = append(waits, waitingToJSON(one))
	}
	return map[string]any{"waits": waits, "more": page.GetMore()}, nil
}

func (s service) getSessions(r *http.Request) (any, error) {
	q := newParameters(r)
	req := &api.SessionsRequest{After: q.sessionID("after"), Limit: q.number("limit"), Stale: q.truth("stale")}
	if err := q.check(); err != nil {
		return nil, err
	}
	page, err := s.Sessions(r.Context(), req)
	if err != nil {
		return nil, err
	}
	sessions := make([]sessionJSON, 0, len(page.GetSessions()))
	for _, one := range page.GetSessions() {
		sessions = append(sessions, sessionJSON{
			one.GetId(), one.GetOwner(), one.GetLeaving(), spanJSON(one.GetTtlNs()), spanJSON(one.GetRemainingNs()), wallClock(one.GetOpenedUnixNs()),
			one.GetHost(), one.GetPid(), one.GetProgram(), one.GetHolds(), one.GetWaits(), one.GetHome(),
		})
	}
	return map[string]any{"sessions": sessions, "more": page.GetMore()}, nil
}

func (s service) getStatus(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), defaultDeadline)
	defer cancel()
	st, err := s.statusFor(ctx)
	if err != nil {
		return nil, err
	}
	return statusToJSON(st), nil
}

func (s service) getMembers(r *http.Request) (any, error) {
	if err := newParameters(r).check(); err != nil {
		return nil, err
	}
	answer, err := s.Members(r.Context(), &api.MembersRequest{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"cluster": answer.GetCluster(), "members": membersJSON(answer.GetMembers())}, nil
}

func membersJSON(all []*api.Member) []memberJSON {
	members := make([]memberJSON, 0, len(all))
	for _, m := range all {
		members = append(members, memberJSON{
			m.GetId(), m.GetPeerAddress(), m.GetClientAddress(), m.GetVoter(), m.GetLeader(), m.GetConnected(), bigNumber(m.GetMatchIndex()),
			m.GetLearner(), bigNumber(m.GetBehind()), strings.ToLower(strings.TrimPrefix(m.GetStage().String(), "STAGE_")),
		})
	}
	return members
}
