package server

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/conclave-io/conclave/service/registry"
)

const (
	// secretSize is how many bytes the secret of a session has, and its id.
	secretSize = len(registry.SessionID{})
	// streamSessions is the most sessions that one stream carries.
	streamSessions = 4096
	// publicPrefix begins the text of every public id, and of no secret.
	publicPrefix = "s-"
)

// sessions are those that one stream carries. What the client sends as the session
// of a request is a secret. It stops here: a command has the id that is derived from
// it, and the reply to the client has the secret again.
type sessions struct {
	caller caller

	mu   sync.Mutex // the reader of the stream derives, its writer turns back
	ids  map[string]registry.SessionID
	sent map[registry.SessionID][]byte
}

func newSessions(c caller) *sessions {
	return &sessions{caller: c, ids: make(map[string]registry.SessionID), sent: make(map[registry.SessionID][]byte)}
}

// id returns the id for what the client sent as a session, or what is wrong with that.
func (s *sessions) id(sent []byte) (id registry.SessionID, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, known := s.ids[string(sent)]; known {
		return id, ""
	}
	if len(s.ids) >= streamSessions {
		return id, fmt.Sprintf("session: this stream has carried %d others, the most it takes; open another stream", streamSessions)
	}
	id, problem = s.caller.sessionID(sent)
	if problem == "" {
		s.ids[string(sent)], s.sent[id] = id, sent
	}
	return id, problem
}

// secret returns what the client sent for the session with an id.
func (s *sessions) secret(id registry.SessionID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[id]
}

// sessionID is like session, for what may not be a secret at all.
func (c caller) sessionID(sent []byte) (id registry.SessionID, problem string) {
	switch {
	case bytes.HasPrefix(sent, []byte(publicPrefix)) && len(sent) != secretSize:
		return id, publicID(string(sent), "the secret that it was opened with")
	case len(sent) != secretSize:
		return id, fmt.Sprintf("session: %d bytes: the secret of a session has %d", len(sent), secretSize)
	case bytes.Equal(sent, make([]byte, secretSize)):
		return id, fmt.Sprintf("session: all zeros: draw %d random bytes", secretSize)
	}
	return c.session(sent), ""
}

// publicID says that a public id was given as the session to act in.
func publicID(given, instead string) string {
	return fmt.Sprintf("session: %.34q: this is the public id of a session; give %s", given, instead)
}

// parsePublicID reads the text of a public id.
func parsePublicID(text string) (id registry.SessionID, err error) {
	digits, public := strings.CutPrefix(text, publicPrefix)
	raw, err := hex.DecodeString(digits)
	if !public || err != nil || len(raw) != len(id) {
		return id, fmt.Errorf(`%.40q: not the public id of a session, which is %q and 32 hexadecimal digits`, text, publicPrefix)
	}
	return registry.SessionID(raw), nil
}
