package stream

import (
	"fmt"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

const (
	// MaxSessions bounds the sessions on one stream.
	MaxSessions = 4096
	// FrameRequests bounds the requests in one frame of a client.
	FrameRequests = 1024
)

// Names turns the secrets of sessions into ids, and back.
type Names interface {
	// ID returns the id for what the client sent as a session, or what is wrong with
	// it.
	ID(sent []byte) (id registry.SessionID, problem string)
	// Secret returns what the client sent for the session with an id, or nil.
	Secret(id registry.SessionID) []byte
}

// Sessions are the sessions of one stream. What the client sends as the session of a request is a
// secret, and it stops here: a command has the id derived from the secret, and the reply to
// the client has the secret again.
type Sessions struct {
	caller Caller
	ids    map[string]registry.SessionID
	sent   map[registry.SessionID][]byte
}

// NewSessions returns the sessions of a new stream.
func NewSessions(c Caller) *Sessions {
	return &Sessions{caller: c, ids: make(map[string]registry.SessionID), sent: make(map[registry.SessionID][]byte)}
}

// Caller returns who opened the stream.
func (s *Sessions) Caller() Caller { return s.caller }

// ID implements Names.
func (s *Sessions) ID(sent []byte) (id registry.SessionID, problem string) {
	if id, known := s.ids[string(sent)]; known {
		return id, ""
	}
	if len(s.ids) >= MaxSessions {
		return id, fmt.Sprintf("session: this stream has carried %d others, the most it takes; open another stream", MaxSessions)
	}
	id, problem = s.caller.ID(sent)
	if problem == "" {
		s.ids[string(sent)], s.sent[id] = id, sent
	}
	return id, problem
}

// Secret implements Names.
func (s *Sessions) Secret(id registry.SessionID) []byte { return s.sent[id] }

// Commands translates the requests of a frame. Requests that cannot be carried out are refused.
// With a farewell the stream ends, and the other results are empty.
func Commands(c Caller, names Names, frame *api.ClientFrame) (commands []registry.Command, refused []*api.Reply, farewell *api.Farewell) {
	if n := len(frame.GetRequests()); n > FrameRequests {
		message := fmt.Sprintf("a frame has %d requests: it may have %d", n, FrameRequests)
		return nil, nil, &api.Farewell{Code: api.Code_CODE_INVALID, Message: message}
	}
	commands, origin := make([]registry.Command, len(frame.GetRequests())), c.Origin()
	n := 0
	for _, req := range frame.GetRequests() {
		id, problem := names.ID(req.GetSession())
		if problem == "" {
			problem = commandFromProto(&commands[n], &origin, id, req)
		}
		if problem != "" {
			commands[n] = registry.Command{}
			refused = append(refused, Refusal(req, api.Code_CODE_INVALID, problem))
			continue
		}
		n++
	}
	return commands[:n], refused, nil
}

// Refusal returns this server's own reply to a request that is not carried out.
func Refusal(req *api.Request, code api.Code, message string) *api.Reply {
	return &api.Reply{Session: req.GetSession(), Sequence: req.GetSequence(), Code: code, Message: message}
}
