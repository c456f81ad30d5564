package stream

import (
	"bytes"
	"fmt"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/convert"
	"github.com/conclave-io/conclave/service/registry"
)

const (
	// SecretSize is how many bytes the secret of a session has, and its id.
	SecretSize = len(registry.SessionID{})
	// PublicPrefix begins the text of every public id, and of no secret.
	PublicPrefix = "s-"
)

// Caller is who opened a stream, or made a call.
type Caller struct {
	// Principal is the name that the caller has proven, such as "cert:batch-7";
	// empty for an anonymous caller.
	Principal string
	// Via is how the call came: "grpc", "http", or "local" from within the server's process
	// or through its admin socket.
	Via string
	// Remote is the address that it came from.
	Remote string
	// Vouched says that another server has proven the caller and passed the call
	// on. Its requests have the id of their session in place of the secret.
	Vouched bool
}

// Session returns the id of the caller's session: what it sent as the session of a
// request is the secret, unless another server has derived the id already.
func (c Caller) Session(sent []byte) registry.SessionID {
	if c.Vouched {
		return registry.SessionID(sent)
	}
	return registry.Derive(c.Principal, sent)
}

// ID is like Session, for what may not be a secret at all. It returns the id, or what is
// wrong with what was sent.
func (c Caller) ID(sent []byte) (id registry.SessionID, problem string) {
	switch {
	case bytes.HasPrefix(sent, []byte(PublicPrefix)) && len(sent) != SecretSize:
		return id, PublicID(string(sent), "the secret that it was opened with")
	case len(sent) != SecretSize:
		return id, fmt.Sprintf("session: %d bytes: the secret of a session has %d", len(sent), SecretSize)
	case bytes.Equal(sent, make([]byte, SecretSize)):
		return id, fmt.Sprintf("session: all zeros: draw %d random bytes", SecretSize)
	}
	return c.Session(sent), ""
}

// PublicID says that a public id was given as the session to act in.
func PublicID(given, instead string) string {
	return fmt.Sprintf("session: %.34q: this is the public id of a session; give %s", given, instead)
}

// Origin is the caller as commands record it.
func (c Caller) Origin() registry.Origin {
	return registry.Origin{Actor: c.Principal, Via: c.Via, Remote: c.Remote}
}

// Command translates a request of the caller, or reports what is wrong with it.
func (c Caller) Command(req *api.Request) (registry.Command, string) {
	id, problem := c.ID(req.GetSession())
	if problem != "" {
		return registry.Command{}, problem
	}
	return convert.Command(c.Origin(), id, req)
}

// PassedOn returns a request for another server, with the id of the session: the
// secret goes no further than to the first server.
func (c Caller) PassedOn(req *api.Request) *api.Request {
	id := c.Session(req.GetSession())
	return &api.Request{Session: id[:], Sequence: req.GetSequence(), Low: req.GetLow(), Home: req.GetHome(), Op: req.GetOp()}
}
