package conclave

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// bearer shows a token with each call and each stream.
type bearer func(context.Context) (string, error)

var _ credentials.PerRPCCredentials = bearer(nil)

func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b(ctx)
	switch {
	case err != nil:
	case token == "":
		err = errors.New("empty")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		err = errors.New("contains a character that tokens do not have")
	}
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, fmt.Sprintf("token: %v", err))
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity is false: onlyHere decides where no TLS is needed.
func (bearer) RequireTransportSecurity() bool { return false }

// inClear is why a connection is refused over which a token could be read by others.
const inClear = "a token would go to another machine in the clear"

// onlyHere makes connections that do not leave this machine, and refuses others.
func onlyHere(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		if to, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil && !to.Addr().Unmap().IsLoopback() {
			conn.Close()
			return nil, errors.New(inClear)
		}
		return conn, nil
	}
}
