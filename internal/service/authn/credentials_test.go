package authn

import (
	"net"
	"testing"

	"google.golang.org/grpc/peer"
)

func TestHangUpClosesTheConnection(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	conn, info, err := Credentials{}.ServerHandshake(near)
	if err != nil || conn != near {
		t.Fatal(conn, err)
	}
	HangUp(peer.NewContext(t.Context(), &peer.Peer{Addr: near.LocalAddr(), AuthInfo: info}))
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}
