package server

import (
	"net"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/conclave-io/conclave/service/api"
)

// defaultTTL is that of a session which does not say.
const defaultTTL = 10 * time.Second

func (s *Server) postOpen(r *http.Request) (any, error) {
	body := struct {
		Session sessionID `json:"session"`
		TTL     spanJSON  `json:"ttl"`
		Host    string    `json:"host"`
		PID     int64     `json:"pid"`
		Program string    `json:"program"`
	}{TTL: spanJSON(defaultTTL), Program: r.UserAgent()}
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	if body.Session == nil {
		body.Session = newSessionID()
	}
	if body.Host == "" {
		body.Host, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	open := &api.Open{TtlNs: int64(body.TTL), Host: body.Host, Pid: body.PID, Program: clip(body.Program)}
	return s.extend(r, body.Session, &api.Request{Op: &api.Request_Open{Open: open}})
}

// clip shortens what browsers say of themselves to what the registry takes.
func clip(text string) string {
	const most = 256
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// onSession is the body of a request that names nothing but a session.
type onSession struct {
	Session sessionID `json:"session"`
}

func (s *Server) postRenew(r *http.Request) (any, error) {
	var body onSession
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	return s.extend(r, body.Session, &api.Request{Op: &api.Request_Renew{Renew: &api.Renew{}}})
}

// extend opens or renews a session.
func (s *Server) extend(r *http.Request, id sessionID, req *api.Request) (any, error) {
	req.Session = id
	reply, err := s.perform(r.Context(), req, nil)
	if err != nil {
		return nil, err
	}
	return struct {
		Session   sessionID `json:"session"`
		Remaining spanJSON  `json:"remaining"`
	}{id, spanJSON(reply.GetRemainingNs())}, nil
}

func (s *Server) postClose(r *http.Request) (any, error) {
	var body onSession
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	_, err := s.perform(r.Context(), &api.Request{Session: body.Session, Op: &api.Request_Close{Close: &api.Close{}}}, nil)
	return body, err
}

// claim is the body of a request for a lock.
type claim struct {
	Session sessionID `json:"session"`
	Name    string    `json:"name"`
	Try     bool      `json:"try"`
	Wait    *spanJSON `json:"wait"`
}

func (s *Server) postAcquire(r *http.Request) (any, error) {
	var body claim
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	return s.acquire(r, body, &api.Acquire{Class: api.Class_CLASS_LOCK})
}

func (s *Server) postCampaign(r *http.Request) (any, error) {
	var body struct {
		claim
		valueJSON
	}
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	return s.acquire(r, body.claim, &api.Acquire{Class: api.Class_CLASS_ELECTION, Value: body.bytes()})
}

// hold is what is held.
type hold struct {
	Session sessionID `json:"session"`
	Name    string    `json:"name,omitempty"`
	Hold    bigNumber `json:"hold"`
	Fence   bigNumber `json:"fence,omitempty"`
}

func (s *Server) acquire(r *http.Request, body claim, a *api.Acquire) (any, error) {
	a.Name, a.Try = body.Name, body.Try
	wait := (*time.Duration)(body.Wait)
	if wait != nil && *wait == 0 || a.Try {
		a.Try, wait = true, nil
	}
	reply, err := s.perform(r.Context(), &api.Request{Session: body.Session, Op: &api.Request_Acquire{Acquire: a}}, wait)
	if err != nil {
		return nil, err
	}
	return hold{body.Session, body.Name, bigNumber(reply.GetSequence()), bigNumber(reply.GetFence())}, nil
}

// onHold is the body of a request that names a hold.
type onHold struct {
	Session sessionID `json:"session"`
	Hold    bigNumber `json:"hold"`
}

func (s *Server) postRelease(r *http.Request) (any, error) {
	var body onHold
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	_, err := s.perform(r.Context(), &api.Request{
		Session: body.Session,
		Op:      &api.Request_Release{Release: &api.Release{Hold: uint64(body.Hold)}},
	}, nil)
	return body, err
}

func (s *Server) postUpdate(r *http.Request) (any, error) {
	var body struct {
		onHold
		valueJSON
	}
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	reply, err := s.perform(r.Context(), &api.Request{
		Session: body.Session,
		Op:      &api.Request_Update{Update: &api.Update{Hold: uint64(body.Hold), Value: body.bytes()}},
	}, nil)
	return hold{Session: body.Session, Hold: body.Hold, Fence: bigNumber(reply.GetFence())}, err
}
