package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
)

// A server that is stopped accepts connections, because the kernel does so, and says nothing. That does
// not show that it is no Conclave server, or that it has no TLS.
func TestServerThatSaysNothing(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for name, secrecy := range map[string]*tls.Config{"plain": nil, "TLS": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New(Config{TLS: secrecy, Dial: func(ctx context.Context, address string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			}})
			defer p.Close()
			conn, err := p.Get(silent.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, err = api.NewConclaveClient(conn).Ping(t.Context(), new(api.PingRequest))
			if plain := Plain(err); plain.Error() != "no answer within 3s" || IsFault(plain) {
				t.Errorf("%v, from %v", plain, err)
			}
		})
	}
}

// The alert by which a server refuses a connection is passed on.
func TestAlerts(t *testing.T) {
	for about, want := range map[string]struct {
		text  string
		fault bool
	}{
		"expired certificate":            {"TLS: the server refused the client certificate: expired certificate", true},
		"unknown certificate":            {"TLS: the server refused the client certificate: unknown certificate", true},
		"unknown certificate authority":  {"TLS: the server requires a client certificate that it trusts", true},
		"certificate required":           {"TLS: the server requires a client certificate that it trusts", true},
		"protocol version not supported": {"TLS: the server refused the connection: protocol version not supported", false},
		"internal error":                 {"TLS: the server refused the connection: internal error", false},
	} {
		for _, before := range []string{preface + ": ", handshake} {
			err := Plain(status.Error(codes.Unavailable, `connection error: desc = "`+before+alert+about+`"`))
			if err.Error() != want.text || IsFault(err) != want.fault {
				t.Errorf("%s: %v, a fault: %v", about, err, IsFault(err))
			}
		}
	}
}

// A permanently wrong address is distinguished from a server that may come back.
func TestAddressesThatAreWrong(t *testing.T) {
	for text, want := range map[string]Kind{
		`connection error: desc = "transport: Error while dialing: dial tcp: lookup db9: no such host"`: UnknownHost,
		"conclave-principal-bin: given 0 times: this port is for servers only":                          PeerPort,
		`connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:1: i/o timeout"`:   0,
	} {
		err := Plain(status.Error(codes.Unavailable, text))
		var fault *Fault
		if errors.As(err, &fault); IsFault(err) != (want != 0) || want != 0 && (fault == nil || fault.Kind != want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
