package pool

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Fault is the error of a call that fails in the same way until somebody changes the settings of
// the client or of the server: a retry is useless.
type Fault struct {
	Kind Kind
	Text string
}

// Kind is the kind of a Fault.
type Kind int

// The kinds of faults.
const (
	// UnknownAuthority means that the client does not trust who signed the certificate of the
	// server.
	UnknownAuthority Kind = iota + 1
	// ClientRefused means that the server requires a client certificate that it trusts, or refused
	// the one that it got.
	ClientRefused
	// NoTLS means that what listens at the address does not speak TLS.
	NoTLS
	// ServerExpired means that the certificate of the server has expired or is not valid yet, by the
	// clock of this machine.
	ServerExpired
	// WrongName means that the certificate of the server is for other hosts.
	WrongName
	// TokenInClear means that a token would go to another machine without TLS.
	TokenInClear
	// UnknownHost means that no host has the name in the address.
	UnknownHost
	// PeerPort means that the port is the one on which servers talk to each other.
	PeerPort
	// Unauthenticated means that the server requires a proof of who this program is, or refused
	// the one it got.
	Unauthenticated
	// Denied means that the rules of the cluster do not allow the call.
	Denied
)

func (f *Fault) Error() string {
	if f.Kind <= TokenInClear {
		return "TLS: " + f.Text
	}
	return f.Text
}

// IsFault reports whether a retry after err is useless.
func IsFault(err error) bool { return errors.As(err, new(*Fault)) }

// Plain makes the error of a call readable: what is left is what happened, without the layers
// that the error passed through. It is a *Fault if a retry is useless.
func Plain(err error) error {
	state, is := status.FromError(err)
	if !is {
		return err
	}
	text := state.Message()
	if fault := faultOf(text); fault != nil {
		return fault
	}
	switch {
	case strings.Contains(text, "connection refused"):
		return errors.New("connection refused")
	case unanswered(text):
		return fmt.Errorf("no answer within %v", connectTimeout)
	case strings.Contains(text, alert):
		return fmt.Errorf("TLS: the server refused the connection: %s", strings.TrimSuffix(after(text, alert), `"`))
	case strings.Contains(text, handshake):
		return fmt.Errorf("TLS: %s", strings.TrimSuffix(after(text, handshake), `"`))
	case strings.Contains(text, preface), strings.Contains(text, "frame header looked like"):
		return errors.New("not a Conclave server, or a server that requires TLS or a client certificate")
	case state.Code() == codes.Unauthenticated:
		return &Fault{Unauthenticated, text}
	case state.Code() == codes.PermissionDenied:
		return &Fault{Denied, text}
	case state.Code() == codes.Unimplemented, strings.Contains(text, "unexpected HTTP status code"),
		strings.Contains(text, "unexpected content-type"):
		return errors.New("not a Conclave server")
	case strings.Contains(text, "Error while dialing: "):
		return errors.New(strings.TrimSuffix(after(text, "Error while dialing: "), `"`))
	case text == "EOF" || state.Code() == codes.Unavailable:
		return fmt.Errorf("connection lost: %s", text)
	default:
		return errors.New(text)
	}
}

// Texts of package grpc about a connection that was not made, and of package tls.
const (
	handshake = "authentication handshake failed: "
	preface   = "error reading server preface"
	alert     = "remote error: tls: "
	verify    = "tls: failed to verify certificate: x509: "
)

// unanswered reports whether a server accepted a connection, and then sent nothing in time. A server
// that is stopped does so: the kernel accepts for it.
func unanswered(text string) bool {
	if !strings.Contains(text, handshake) && !strings.Contains(text, preface) {
		return false
	}
	for _, end := range []string{"context deadline exceeded", "use of closed network connection", "i/o timeout"} {
		if strings.Contains(text, end) {
			return true
		}
	}
	return false
}

// faultOf returns the fault of a connection that a text describes, or nil.
func faultOf(text string) *Fault {
	switch {
	case strings.Contains(text, inClear):
		return &Fault{TokenInClear, inClear}
	case strings.Contains(text, "no such host"):
		return &Fault{UnknownHost, "no such host"}
	case strings.Contains(text, "this port is for servers only"):
		return &Fault{PeerPort, "this port is for servers only"}
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return &Fault{NoTLS, "the server does not speak TLS"}
	case strings.Contains(text, "tls: certificate required"), strings.Contains(text, "tls: unknown certificate authority"),
		strings.Contains(text, "tls: bad certificate"):
		return &Fault{ClientRefused, "the server requires a client certificate that it trusts"}
	case strings.Contains(text, "certificate signed by unknown authority"):
		return &Fault{UnknownAuthority, "certificate signed by unknown authority"}
	case strings.Contains(text, verify):
		return unverified(strings.TrimSuffix(after(text, verify), `"`))
	}
	for _, about := range refusals {
		if strings.Contains(text, alert+about) {
			return &Fault{ClientRefused, "the server refused the client certificate: " + about}
		}
	}
	return nil
}

// refusals are the other alerts by which a server refuses a certificate [RFC 8446, 6.2].
var refusals = []string{"expired certificate", "revoked certificate", "unsupported certificate", "unknown certificate", "access denied"}

// unverified returns the fault of a certificate that the client refused, or nil.
func unverified(why string) *Fault {
	const expired, names = "certificate has expired or is not yet valid: ", "certificate is "
	switch {
	case strings.HasPrefix(why, expired):
		return &Fault{ServerExpired, "the certificate of the server has expired or is not valid yet: " + strings.TrimPrefix(why, expired)}
	case strings.HasPrefix(why, names), strings.HasPrefix(why, "cannot validate certificate for "):
		return &Fault{WrongName, why}
	}
	return nil
}

// after returns what follows the last occurrence of mark in text.
func after(text, mark string) string {
	return text[strings.LastIndex(text, mark)+len(mark):]
}
