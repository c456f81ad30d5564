package jsonform

import (
	"time"

	"github.com/conclave-io/conclave/api"
)

// Session is a live session.
type Session struct {
	SessionID SessionID `json:"session_id"`
	Owner     string    `json:"owner,omitempty"`
	Leaving   bool      `json:"leaving,omitempty"`
	TTL       Duration  `json:"ttl"`
	Remaining Duration  `json:"remaining,omitempty"`
	Opened    time.Time `json:"opened"`
	Host      string    `json:"host"`
	PID       int64     `json:"pid"`
	Program   string    `json:"program"`
	Holds     uint32    `json:"holds"`
	Waits     uint32    `json:"waits"`
	// Home is the server that keeps the session by itself, absent if it is in the registry.
	Home uint64 `json:"home,omitempty"`
}

// SessionOf returns the form of a session.
func SessionOf(s *api.Session) Session {
	return Session{
		s.GetId(), s.GetOwner(), s.GetLeaving(), Duration(s.GetTtlNs()), Duration(s.GetRemainingNs()), wallClock(s.GetOpenedUnixNs()),
		s.GetHost(), s.GetPid(), s.GetProgram(), s.GetHolds(), s.GetWaits(), s.GetHome(),
	}
}

// Sessions is a page of a list of sessions.
type Sessions struct {
	More     bool      `json:"more"`
	Sessions []Session `json:"sessions"`
}

// SessionsOf returns the form of a page.
func SessionsOf(page *api.SessionsResponse) Sessions {
	return Sessions{page.GetMore(), each(page.GetSessions(), SessionOf)}
}

// EndedSession is the answer to a request to end a session of somebody else.
type EndedSession struct {
	SessionID SessionID `json:"session_id"`
	// Holds is the number of holds that the session has to release first.
	Holds uint32 `json:"holds"`
}
