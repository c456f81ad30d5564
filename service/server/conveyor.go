package server

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// conveyor takes the place of TLS in gRPC, since the splitter has already done TLS. It
// keeps the connection available, so that a client that does not read can be
// disconnected.
type conveyor struct {
	server uint64 // whose local principals connect without the network
}

// callInfo gives calls access to the connection that they came over.
type callInfo struct {
	credentials.CommonAuthInfo
	conn net.Conn
	identity
}

func (callInfo) AuthType() string { return "conclave" }

func (c conveyor) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	level := credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}
	return conn, callInfo{level, conn, identify(conn, "grpc", c.server)}, nil
}

func (conveyor) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a conveyor takes connections and makes none")
}

func (conveyor) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "conclave"}
}

func (c conveyor) Clone() credentials.TransportCredentials { return c }

func (conveyor) OverrideServerName(string) error { return nil }

// hangUp closes the connection of a call.
func hangUp(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if l, ok := p.AuthInfo.(callInfo); ok {
			l.conn.Close()
		}
	}
}
