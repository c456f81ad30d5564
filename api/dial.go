package api

import (
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// largestMessage bounds what is taken from a server: a page of 1,000 elections may have
// values of 64 KiB each.
const largestMessage = 80 << 20

// Dial returns a connection of a client or of a server to the server at address. Connect bounds
// an attempt to connect with its handshakes. The address is what the dialer in options gets.
func Dial(address string, connect time.Duration, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	// The name is a URL, in which the % of the zone of an IPv6 address and the # of a path have meanings
	// of their own.
	return grpc.NewClient("passthrough:///"+url.PathEscape(address), append([]grpc.DialOption{
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 250 * time.Millisecond},
			MinConnectTimeout: connect,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage)),
	}, options...)...)
}
