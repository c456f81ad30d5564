package server

import (
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/stream"
)

// sessions are the sessions of one stream: its reader derives ids from secrets, and its
// writer turns ids back into secrets.
type sessions struct {
	caller caller

	mu    sync.Mutex
	names *stream.Sessions
}

func newSessions(c caller) *sessions { return &sessions{caller: c, names: stream.NewSessions(c)} }

// ID implements stream.Names.
func (s *sessions) ID(sent []byte) (registry.SessionID, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.ID(sent)
}

// Secret implements stream.Names.
func (s *sessions) Secret(id registry.SessionID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.Secret(id)
}

// parsePublicID reads the text of a public id.
func parsePublicID(text string) (id registry.SessionID, err error) {
	digits, public := strings.CutPrefix(text, stream.PublicPrefix)
	raw, err := hex.DecodeString(digits)
	if !public || err != nil || len(raw) != len(id) {
		return id, fmt.Errorf(`%.40q: not the public id of a session; must be %q and 32 hexadecimal digits`, text, stream.PublicPrefix)
	}
	return registry.SessionID(raw), nil
}
