package rest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// defaultTTL is the TTL of a session whose request has none.
const defaultTTL = 10 * time.Second

func (h *Handler) postOpen(r *http.Request) (any, error) {
	body := struct {
		Session secret            `json:"session"`
		TTL     jsonform.Duration `json:"ttl"`
		Host    string            `json:"host"`
		PID     int64             `json:"pid"`
		Program string            `json:"program"`
		// Home means that a server should keep the session by itself, for guarded locks.
		Home bool `json:"home"`
	}{TTL: jsonform.Duration(defaultTTL), Program: registry.ClipText(r.UserAgent())}
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
		if req.Home, err = h.server.AnyHome(r.Context()); err != nil {
			return nil, err
		}
	}
	return h.extend(r, body.Session, req)
}

// onSession is the body of a request that names only a session.
type onSession struct {
	Session secret `json:"session"`
	// Home is the server that keeps the session by itself, 0 if it is in the registry.
	Home uint64 `json:"home,omitempty"`
}

func (h *Handler) postRenew(r *http.Request, body *onSession) (any, error) {
	return h.extend(r, body.Session, &api.Request{Home: body.Home, Op: &api.Request_Renew{Renew: &api.Renew{}}})
}

// extend opens or renews a session.
func (h *Handler) extend(r *http.Request, session secret, req *api.Request) (any, error) {
	req.Session = session
	reply, err := h.perform(r.Context(), req, nil)
	if err != nil {
		return nil, err
	}
	return struct {
		Session   secret             `json:"session"`
		SessionID jsonform.SessionID `json:"session_id"`
		Remaining jsonform.Duration  `json:"remaining"`
		// Revoked are the holds that the session is asked to release.
		Revoked []jsonform.Uint64 `json:"revoked,omitempty"`
		Home    uint64            `json:"home,omitempty"`
	}{session, reply.GetId(), jsonform.Duration(reply.GetRemainingNs()), jsonform.Uint64sOf(reply.GetRevoked()), req.GetHome()}, nil
}

func (h *Handler) postClose(r *http.Request, body *onSession) (any, error) {
	_, err := h.perform(r.Context(), &api.Request{Session: body.Session, Home: body.Home, Op: &api.Request_Close{Close: &api.Close{}}}, nil)
	return body, err
}

// claim is the body of a request to acquire a lock.
type claim struct {
	onSession
	Name  string             `json:"name"`
	Try   bool               `json:"try"`
	Wait  *jsonform.Duration `json:"wait"`
	Keeps []jsonform.Kept    `json:"keeps"`
	// AtLeast and DelayAfterLoss say how long the name stays closed after the hold.
	AtLeast        jsonform.Duration `json:"at_least"`
	DelayAfterLoss jsonform.Duration `json:"delay_after_loss"`
}

type acquireBody struct {
	claim
	Limit  *uint32 `json:"limit"`
	Shared bool    `json:"shared"`
}

func (h *Handler) postAcquire(r *http.Request, body *acquireBody) (any, error) {
	a := &api.Acquire{Class: api.Class_CLASS_LOCK, Shared: body.Shared}
	if body.Limit != nil {
		switch a.Limit = *body.Limit; {
		case a.Limit < 1 || a.Limit > registry.MaxLimit:
			return nil, malformed("limit: %d: must be between 1 and %d", a.Limit, registry.MaxLimit)
		case a.Shared:
			return nil, malformed("shared: cannot be combined with limit")
		}
	}
	return h.acquire(r, body.claim, a)
}

type campaignBody struct {
	claim
	jsonform.TextOrBase64
	Priority int64             `json:"priority"`
	Patience jsonform.Duration `json:"patience"`
}

func (h *Handler) postCampaign(r *http.Request, body *campaignBody) (any, error) {
	if err := oneValue(body.TextOrBase64); err != nil {
		return nil, err
	}
	return h.acquire(r, body.claim, &api.Acquire{
		Class: api.Class_CLASS_ELECTION, Value: body.Bytes(), Priority: body.Priority, PatienceNs: int64(body.Patience),
	})
}

// oneValue refuses a value that is given twice.
func oneValue(v jsonform.TextOrBase64) error {
	if v.Value != nil && v.ValueBase64 != nil {
		return malformed("value: cannot be combined with value_base64")
	}
	return nil
}

// hold describes a hold.
type hold struct {
	onSession
	Name  string          `json:"name,omitempty"`
	Hold  jsonform.Uint64 `json:"hold"`
	Fence jsonform.Uint64 `json:"fence,omitempty"`
	Floor jsonform.Uint64 `json:"floor,omitempty"`
}

// granted is a new hold. A hold that the caller does not know would last as long as its session.
type granted struct {
	hold
	release func()
}

func (g granted) takeBack() { g.release() }

func (h *Handler) acquire(r *http.Request, body claim, a *api.Acquire) (any, error) {
	var err error
	if a.Keeps, err = keptMessages(body.Keeps); err != nil {
		return nil, err
	}
	wait := (*time.Duration)(body.Wait)
	if body.Try && wait != nil {
		return nil, malformed("try: cannot be combined with wait")
	}
	a.Name, a.Try = body.Name, body.Try
	a.AtLeastNs, a.DelayAfterLossNs = int64(body.AtLeast), int64(body.DelayAfterLoss)
	if wait != nil && *wait == 0 {
		a.Try, wait = true, nil
	}
	req := &api.Request{Session: body.Session, Home: body.Home, Op: &api.Request_Acquire{Acquire: a}}
	reply, err := h.perform(r.Context(), req, wait)
	if err != nil {
		return nil, err
	}
	if a.GetAtLeastNs()+a.GetDelayAfterLossNs() > 0 && !reply.GetLingers() {
		return nil, h.noLinger(r, body.onSession, reply.GetSequence())
	}
	req.Sequence = reply.GetSequence()
	return granted{
		hold{body.onSession, body.Name, jsonform.Uint64(reply.GetSequence()), jsonform.Uint64(reply.GetFence()), jsonform.Uint64(reply.GetFloor())},
		func() { h.server.TakeBack(r.Context(), req) },
	}, nil
}

// noLinger gives back a hold that a server has granted which is too old to keep the name closed
// afterwards, and returns why.
func (h *Handler) noLinger(r *http.Request, on onSession, hold uint64) error {
	_, err := h.perform(r.Context(), &api.Request{
		Session: on.Session, Home: on.Home, Op: &api.Request_Release{Release: &api.Release{Hold: hold, Unused: true}},
	}, nil)
	return errors.Join(err, malformed("at_least, delay_after_loss: the leader is too old to keep a name closed after a hold: upgrade the servers"))
}

// keptMessages translates the names of holds.
func keptMessages(keeps []jsonform.Kept) (messages []*api.Kept, err error) {
	for _, k := range keeps {
		kept := &api.Kept{Name: k.Lock, Fence: uint64(k.Fence)}
		if (k.Lock == "") == (k.Election == "") {
			return nil, malformed("keeps: name either a lock or an election")
		}
		if k.Election != "" {
			kept.Class, kept.Name = api.Class_CLASS_ELECTION, k.Election
		}
		messages = append(messages, kept)
	}
	return messages, nil
}

// onHold is the body of a request that names a hold.
type onHold struct {
	onSession
	Hold jsonform.Uint64 `json:"hold"`
}

type releaseBody struct {
	onHold
	// Unused means that the hold was not used: the name does not stay closed after it.
	Unused bool `json:"unused,omitempty"`
}

func (h *Handler) postRelease(r *http.Request, body *releaseBody) (any, error) {
	_, err := h.perform(r.Context(), &api.Request{
		Session: body.Session, Home: body.Home,
		Op: &api.Request_Release{Release: &api.Release{Hold: uint64(body.Hold), Unused: body.Unused}},
	}, nil)
	return body, err
}

type updateBody struct {
	onHold
	jsonform.TextOrBase64
}

func (h *Handler) postUpdate(r *http.Request, body *updateBody) (any, error) {
	if err := oneValue(body.TextOrBase64); err != nil {
		return nil, err
	}
	reply, err := h.perform(r.Context(), &api.Request{
		Session: body.Session,
		Home:    body.Home,
		Op:      &api.Request_Update{Update: &api.Update{Hold: uint64(body.Hold), Value: body.Bytes()}},
	}, nil)
	return hold{onSession: body.onSession, Hold: body.Hold, Fence: jsonform.Uint64(reply.GetFence())}, err
}

type transferBody struct {
	onHold
	To string `json:"to"`
}

// postTransfer hands an election to a candidate.
func (h *Handler) postTransfer(r *http.Request, body *transferBody) (any, error) {
	_, err := h.perform(r.Context(), &api.Request{
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
func (h *Handler) postLeader(r *http.Request, body *leaderBody) (any, error) {
	lead := &api.LeadMember{Id: body.To}
	answer, err := h.server.ChangeMembers(r.Context(), &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Lead{Lead: lead}})
	if err != nil {
		return nil, err
	}
	return struct {
		Leader uint64 `json:"leader"`
	}{answer.GetId()}, nil
}

type revokeBody struct {
	onSession
	Lock     string          `json:"lock"`
	Election string          `json:"election"`
	Fence    jsonform.Uint64 `json:"fence"`
	Reason   string          `json:"reason"`
}

// postRevoke asks the holders of a lock or an election to release it.
func (h *Handler) postRevoke(r *http.Request, body *revokeBody) (any, error) {
	if (body.Lock == "") == (body.Election == "") {
		return nil, malformed("name either a lock or an election")
	}
	revoke := &api.Revoke{Name: body.Lock, Fence: uint64(body.Fence), Reason: body.Reason}
	if body.Election != "" {
		revoke.Class, revoke.Name = api.Class_CLASS_ELECTION, body.Election
	}
	reply, err := h.perform(r.Context(), &api.Request{Session: body.Session, Op: &api.Request_Revoke{Revoke: revoke}}, nil)
	if err != nil {
		return nil, err
	}
	return struct {
		Name  string          `json:"name"`
		Fence jsonform.Uint64 `json:"fence"`
	}{revoke.GetName(), jsonform.Uint64(reply.GetFence())}, nil
}

type endSessionBody struct {
	Reason string `json:"reason"`
}

// postEndSession ends a session of another client.
func (h *Handler) postEndSession(r *http.Request, body *endSessionBody) (any, error) {
	var id jsonform.SessionID
	if err := id.UnmarshalText([]byte(r.PathValue("id"))); err != nil {
		return nil, malformed("session: %v", err)
	}
	answer, err := h.server.EndSession(r.Context(), &api.EndSessionRequest{Id: id, Reason: body.Reason})
	if err != nil {
		return nil, err
	}
	return jsonform.EndedSession{SessionID: id, Holds: answer.GetHolds()}, nil
}

// perform carries out a request and returns an error for every reply but OK.
func (h *Handler) perform(ctx context.Context, req *api.Request, wait *time.Duration) (*api.Reply, error) {
	reply := h.server.Perform(ctx, req, wait)
	if reply.GetCode() != api.Code_CODE_OK {
		return nil, refused{reply}
	}
	return reply, nil
}

// secret is the secret of a session, as 32 hexadecimal digits: only its owner sends it, and
// only its owner gets it back.
type secret []byte

func (s *secret) UnmarshalText(text []byte) error {
	if strings.HasPrefix(string(text), api.PublicPrefix) {
		return malformed("%s", stream.PublicID(string(text), "what /v1/open returned as session"))
	}
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != stream.SecretSize {
		return malformed("session: not a secret; give the 32 hexadecimal digits that /v1/open returned as session")
	}
	*s = raw
	return nil
}

func (s secret) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s), nil }

func newSecret() secret {
	s := make(secret, stream.SecretSize)
	rand.Read(s) // never fails: crypto/rand ends the program instead
	return s
}
