package stream

import (
	"bytes"
	"fmt"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// SecretSize is the size of the secret of a session, and of its id, in bytes.
const SecretSize = len(registry.SessionID{})

// Caller is who opened a stream or made a call.
type Caller struct {
	// Principal is the name that the caller has proven, such as "cert:batch-7";
	// empty for an anonymous caller.
	Principal string
	// Via is how the call came: "grpc", "http", or "local" for calls within the server's process
	// or through its admin socket.
	Via string
	// Remote is the address that it came from.
	Remote string
	// Vouched means that another server has checked the caller and passed the call on. Its
	// requests have the id of their session instead of the secret.
	Vouched bool
}

// Session returns the id of the caller's session. The session of a request is a secret, unless
// another server has already derived the id from it.
func (c Caller) Session(sent []byte) registry.SessionID {
	if c.Vouched {
		return registry.SessionID(sent)
	}
	return registry.Derive(c.Principal, sent)
}

// ID is like Session, for a value that may not be a valid secret. It returns the id, or what is
// wrong with the value.
func (c Caller) ID(sent []byte) (id registry.SessionID, problem string) {
	switch {
	case bytes.HasPrefix(sent, []byte(api.PublicPrefix)) && len(sent) != SecretSize:
		return id, PublicID(string(sent), "the secret that it was opened with")
	case len(sent) != SecretSize:
		return id, fmt.Sprintf("session: %d bytes: the secret of a session has %d", len(sent), SecretSize)
	case bytes.Equal(sent, make([]byte, SecretSize)):
		return id, fmt.Sprintf("session: all zeros: draw %d random bytes", SecretSize)
	}
	return c.Session(sent), ""
}

// PublicID is the message for a public id that was used instead of a secret.
func PublicID(given, instead string) string {
	return fmt.Sprintf("session: %.34q: this is the public id of a session; give %s", given, instead)
}

// Origin returns the caller in the form that commands record.
func (c Caller) Origin() registry.Origin {
	return registry.Origin{Actor: c.Principal, Via: c.Via, Remote: c.Remote}
}

// Command translates a request of the caller, or returns what is wrong with it.
func (c Caller) Command(req *api.Request) (command registry.Command, problem string) {
	id, problem := c.ID(req.GetSession())
	if problem == "" {
		origin := c.Origin()
		problem = commandFromProto(&command, &origin, id, req)
	}
	return command, problem
}

// PassedOn returns a request for another server, with the id of the session: only the first
// server gets the secret.
func (c Caller) PassedOn(req *api.Request) *api.Request {
	id := c.Session(req.GetSession())
	return &api.Request{Session: id[:], Sequence: req.GetSequence(), Low: req.GetLow(), Home: req.GetHome(), Op: req.GetOp()}
}
