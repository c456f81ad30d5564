package api_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave/api"
)

// TestDialedAddress: what dials gets the address as it was given, whatever its characters mean in URLs.
func TestDialedAddress(t *testing.T) {
	for _, address := range []string{"127.0.0.1:7400", "[::1]:7400", "[fe80::1%eth0]:7400", "unix:/data#2/a b?c/100%/admin.sock", "2"} {
		dialed := make(chan string, 1)
		conn, err := api.Dial(address, time.Minute, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(_ context.Context, to string) (net.Conn, error) {
				select {
				case dialed <- to:
				default:
				}
				return nil, errors.New("a test dials nothing")
			}))
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		conn.Connect()
		if got := <-dialed; got != address {
			t.Errorf("%s: %s is dialed", address, got)
		}
		conn.Close()
	}
}
