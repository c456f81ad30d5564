package authn

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Credentials take the place of TLS in gRPC, since listen.Splitter has already done TLS. They
// keep the connection available, so that a client that does not read can be
// disconnected.
type Credentials struct {
	Server uint64 // whose local principals connect without the network
}

// connInfo gives calls access to the connection that they came over.
type connInfo struct {
	credentials.CommonAuthInfo
	conn net.Conn
	Identity
}

// AuthType implements credentials.AuthInfo.
func (connInfo) AuthType() string { return "conclave" }

// ServerHandshake finds out who has connected.
func (c Credentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	level := credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}
	return conn, connInfo{level, conn, Identify(conn, "grpc", c.Server)}, nil
}

// ClientHandshake fails.
func (Credentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are for servers")
}

// Info implements credentials.TransportCredentials.
func (Credentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "conclave"}
}

// Clone implements credentials.TransportCredentials.
func (c Credentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials.
func (Credentials) OverrideServerName(string) error { return nil }

// HangUp closes the connection of a call.
func HangUp(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(connInfo); ok {
			c.conn.Close()
		}
	}
}
