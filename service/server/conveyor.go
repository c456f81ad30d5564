package server

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// conveyor stands where gRPC expects TLS. The splitter has done that already;
// what is left is to keep the connection at hand, so that a client that takes
// nothing can be cut off.
type conveyor struct {
	server uint64 // whose principals are those that connect without the network
}

// link is a connection as the calls that come over it see it.
type link struct {
	credentials.CommonAuthInfo
	conn net.Conn
	identity
}

func (link) AuthType() string { return "conclave" }

func (c conveyor) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	level := credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}
	return conn, link{level, conn, identify(conn, "grpc", c.server)}, nil
}

func (conveyor) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a conveyor takes connections and makes none")
}

func (conveyor) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "conclave"}
}

func (c conveyor) Clone() credentials.TransportCredentials { return c }

func (conveyor) OverrideServerName(string) error { return nil }

// hangUp closes the connection that a call came over.
func hangUp(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if l, ok := p.AuthInfo.(link); ok {
			l.conn.Close()
		}
	}
}
