package pool

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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
