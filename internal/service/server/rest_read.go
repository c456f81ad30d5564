package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/conclave-io/conclave/api"
)

// getList returns the function that lists the resources of a class, under a key.
func (s service) getList(class api.Class, key string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		q := newParameters(r)
		req := &api.ListRequest{
			Class: class, Prefix: q.text("prefix"), After: q.text("after"),
			Limit: q.number("limit"), Waiters: q.number("waiters"), Stale: q.truth("stale"),
			Order: q.order("order"),
		}
		return answered(r, q, s.List, req, func(page *api.ListResponse) any {
			body := map[string]any{key: listed(page.GetResources(), resourceToJSON), "more": page.GetMore()}
			if silent := page.GetSilent(); len(silent) > 0 {
				body["silent"] = silent
			}
			return body
		})
	}
}

// getWhy returns the function that explains a resource of a class.
func (s service) getWhy(class api.Class) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		q := newParameters(r)
		req := &api.ExplainRequest{Class: class, Name: r.PathValue("name"), Waiters: q.number("waiters"), Stale: q.truth("stale")}
		return answered(r, q, s.Explain, req, func(answer *api.ExplainResponse) any { return explanationToJSON(answer) })
	}
}

func (s service) getWaits(r *http.Request) (any, error) {
	q := newParameters(r)
	req := &api.WaitsRequest{Limit: q.number("limit"), Stale: q.truth("stale")}
	return answered(r, q, s.Waits, req, func(page *api.WaitsResponse) any {
		return map[string]any{"waits": listed(page.GetWaits(), waitingToJSON), "more": page.GetMore()}
	})
}

func (s service) getSessions(r *http.Request) (any, error) {
	q := newParameters(r)
	req := &api.SessionsRequest{After: q.sessionID("after"), Limit: q.number("limit"), Stale: q.truth("stale")}
	return answered(r, q, s.Sessions, req, func(page *api.SessionsResponse) any {
		return map[string]any{"sessions": listed(page.GetSessions(), sessionToJSON), "more": page.GetMore()}
	})
}

func sessionToJSON(one *api.Session) sessionJSON {
	return sessionJSON{
		one.GetId(), one.GetOwner(), one.GetLeaving(), spanJSON(one.GetTtlNs()), spanJSON(one.GetRemainingNs()), wallClock(one.GetOpenedUnixNs()),
		one.GetHost(), one.GetPid(), one.GetProgram(), one.GetHolds(), one.GetWaits(), one.GetHome(),
	}
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
	return answered(r, newParameters(r), s.Members, &api.MembersRequest{}, func(answer *api.MembersResponse) any {
		return map[string]any{"cluster": answer.GetCluster(), "members": membersJSON(answer.GetMembers())}
	})
}

func membersJSON(all []*api.Member) []memberJSON {
	return listed(all, func(m *api.Member) memberJSON {
		return memberJSON{
			m.GetId(), m.GetPeerAddress(), m.GetClientAddress(), m.GetVoter(), m.GetLeader(), m.GetConnected(), bigNumber(m.GetMatchIndex()),
			m.GetLearner(), bigNumber(m.GetBehind()), strings.ToLower(strings.TrimPrefix(m.GetStage().String(), "STAGE_")),
		}
	})
}
