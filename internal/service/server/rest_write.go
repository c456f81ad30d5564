package server

import (
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// defaultTTL is the TTL of a session whose request has none.
const defaultTTL = 10 * time.Second

func (s service) postOpen(r *http.Request) (any, error) {
	body := struct {
		Session secret   `json:"session"`
		TTL     spanJSON `json:"ttl"`
		Host    string   `json:"host"`
		PID     int64    `json:"pid"`
		Program string   `json:"program"`
		// Home means that a server should keep the session by itself, for guarded locks.
		Home bool `json:"home"`
	}{TTL: spanJSON(defaultTTL), Program: clip(r.UserAgent())}
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	if body.Session == nil {
		body.Session = newSecret()
	}
	if body.Host == "" {
		body.Host, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	req := &api.Request{Op: &api.Request_Open{Open: &api.Open{TtlNs: int64(body.TTL), Host: body.Host, Pid: body.PID, Program: body.Program}}}
	if body.Home {
		var err error
		if req.Home, err = s.anyHome(r.Context()); err != nil {
			return nil, err
		}
	}
	return s.extend(r, body.Session, req)
}

// clip cuts the description that browsers send to the length that the registry accepts.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), registry.MaxText)], "")
}

// onSession is the body of a request that names only a session.
type onSession struct {
	Session secret `json:"session"`
	// Home is the server that keeps the session by itself, 0 if it is in the registry.
	Home uint64 `json:"home,omitempty"`
}

func (s service) postRenew(r *http.Request, body *onSession) (any, error) {
	return s.extend(r, body.Session, &api.Request{Home: body.Home, Op: &api.Request_Renew{Renew: &api.Renew{}}})
}

// extend opens or renews a session.
func (s service) extend(r *http.Request, session secret, req *api.Request) (any, error) {
	req.Session = session
	reply, err := s.perform(r.Context(), req, nil)
	if err != nil {
		return nil, err
	}
	return struct {
		Session   secret    `json:"session"`
		SessionID sessionID `json:"session_id"`
		Remaining spanJSON  `json:"remaining"`
		// Revoked are the holds that the session is asked to release.
		Revoked []bigNumber `json:"revoked,omitempty"`
		Home    uint64      `json:"home,omitempty"`
	}{session, reply.GetId(), spanJSON(reply.GetRemainingNs()), bigNumbers(reply.GetRevoked()), req.GetHome()}, nil
}

func (s service) postClose(r *http.Request, body *onSession) (any, error) {
	_, err := s.perform(r.Context(), &api.Request{Session: body.Session, Home: body.Home, Op: &api.Request_Close{Close: &api.Close{}}}, nil)
	return body, err
}

// claim is the body of a request to acquire a lock.
type claim struct {
	onSession
	Name  string    `json:"name"`
	Try   bool      `json:"try"`
	Wait  *spanJSON `json:"wait"`
	Keeps keepsJSON `json:"keeps"`
}

type acquireBody struct {
	claim
	Limit  uint32 `json:"limit"`
	Shared bool   `json:"shared"`
}

func (s service) postAcquire(r *http.Request, body *acquireBody) (any, error) {
	return s.acquire(r, body.claim, &api.Acquire{Class: api.Class_CLASS_LOCK, Limit: body.Limit, Shared: body.Shared})
}

type campaignBody struct {
	claim
	valueJSON
	Priority int64    `json:"priority"`
	Patience spanJSON `json:"patience"`
}

func (s service) postCampaign(r *http.Request, body *campaignBody) (any, error) {
	return s.acquire(r, body.claim, &api.Acquire{
		Class: api.Class_CLASS_ELECTION, Value: body.bytes(), Priority: body.Priority, PatienceNs: int64(body.Patience),
	})
}

// hold describes a hold.
type hold struct {
	onSession
	Name  string    `json:"name,omitempty"`
	Hold  bigNumber `json:"hold"`
	Fence bigNumber `json:"fence,omitempty"`
	Floor bigNumber `json:"floor,omitempty"`
}

func (s service) acquire(r *http.Request, body claim, a *api.Acquire) (any, error) {
	var err error
	if a.Keeps, err = body.Keeps.message(); err != nil {
		return nil, err
	}
	a.Name, a.Try = body.Name, body.Try
	wait := (*time.Duration)(body.Wait)
	if wait != nil && *wait == 0 || a.Try {
		a.Try, wait = true, nil
	}
	reply, err := s.perform(r.Context(), &api.Request{Session: body.Session, Home: body.Home, Op: &api.Request_Acquire{Acquire: a}}, wait)
	if err != nil {
		return nil, err
	}
	return hold{body.onSession, body.Name, bigNumber(reply.GetSequence()), bigNumber(reply.GetFence()), bigNumber(reply.GetFloor())}, nil
}

// onHold is the body of a request that names a hold.
type onHold struct {
	onSession
	Hold bigNumber `json:"hold"`
}

func (s service) postRelease(r *http.Request, body *onHold) (any, error) {
	_, err := s.perform(r.Context(), &api.Request{
		Session: body.Session, Home: body.Home,
		Op: &api.Request_Release{Release: &api.Release{Hold: uint64(body.Hold)}},
	}, nil)
	return body, err
}

type updateBody struct {
	onHold
	valueJSON
}

func (s service) postUpdate(r *http.Request, body *updateBody) (any, error) {
	reply, err := s.perform(r.Context(), &api.Request{
		Session: body.Session,
		Home:    body.Home,
		Op:      &api.Request_Update{Update: &api.Update{Hold: uint64(body.Hold), Value: body.bytes()}},
	}, nil)
	return hold{onSession: body.onSession, Hold: body.Hold, Fence: bigNumber(reply.GetFence())}, err
}

type transferBody struct {
	onHold
	To string `json:"to"`
}

// postTransfer hands an election to a candidate.
func (s service) postTransfer(r *http.Request, body *transferBody) (any, error) {
	_, err := s.perform(r.Context(), &api.Request{
		Session: body.Session,
		Home:    body.Home,
		Op:      &api.Request_Transfer{Transfer: &api.Transfer{Hold: uint64(body.Hold), To: []byte(body.To)}},
	}, nil)
	return body.onHold, err
}

type leaderBody struct {
	To uint64 `json:"to"`
}

// postLeader hands the leadership to a server.
func (s service) postLeader(r *http.Request, body *leaderBody) (any, error) {
	lead := &api.LeadMember{Id: body.To}
	answer, err := s.ChangeMembers(r.Context(), &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Lead{Lead: lead}})
	if err != nil {
		return nil, err
	}
	return struct {
		Leader uint64 `json:"leader"`
	}{answer.GetId()}, nil
}

type revokeBody struct {
	onSession
	Lock     string    `json:"lock"`
	Election string    `json:"election"`
	Fence    bigNumber `json:"fence"`
	Reason   string    `json:"reason"`
}

// postRevoke asks the holders of a lock or an election to release it.
func (s service) postRevoke(r *http.Request, body *revokeBody) (any, error) {
	if (body.Lock == "") == (body.Election == "") {
		return nil, malformed("name either a lock or an election")
	}
	revoke := &api.Revoke{Name: body.Lock, Fence: uint64(body.Fence), Reason: body.Reason}
	if body.Election != "" {
		revoke.Class, revoke.Name = api.Class_CLASS_ELECTION, body.Election
	}
	reply, err := s.perform(r.Context(), &api.Request{Session: body.Session, Op: &api.Request_Revoke{Revoke: revoke}}, nil)
	if err != nil {
		return nil, err
	}
	return struct {
		Name  string    `json:"name"`
		Fence bigNumber `json:"fence"`
	}{revoke.GetName(), bigNumber(reply.GetFence())}, nil
}

type endSessionBody struct {
	Reason string `json:"reason"`
}

// postEndSession ends a session of another client.
func (s service) postEndSession(r *http.Request, body *endSessionBody) (any, error) {
	id, err := parsePublicID(r.PathValue("id"))
	if err != nil {
		return nil, malformed("session: %v", err)
	}
	answer, err := s.EndSession(r.Context(), &api.EndSessionRequest{Id: id[:], Reason: body.Reason})
	if err != nil {
		return nil, err
	}
	return struct {
		SessionID sessionID `json:"session_id"`
		// Holds is the number of holds that the session has to release first.
		Holds uint32 `json:"holds"`
	}{id[:], answer.GetHolds()}, nil
}
