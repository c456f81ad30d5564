package client_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
)

// elsewhereConn is a connection to another machine.
type elsewhereConn struct {
	net.Conn
	to string
}

func (c elsewhereConn) RemoteAddr() net.Addr {
	to, err := net.ResolveTCPAddr("tcp", c.to)
	if err != nil {
		panic(err)
	}
	return to
}

// Without TLS, no byte of a call with a token goes to another machine, and the caller
// gets an error at once.
func TestTokensStayHereInTheClear(t *testing.T) {
	for to, refused := range map[string]bool{"10.0.0.1:7400": true, "[2001:db8::1]:7400": true, "127.0.0.1:7400": false, "127.3.2.1:7400": false, "[::1]:7400": false, "[::ffff:127.0.0.1]:7400": false} {
		asked, sent := 0, make(chan int, 1)
		dial := func(context.Context, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				n, _ := server.Read(make([]byte, 1<<10))
				server.Close()
				select {
				case sent <- n:
				default:
				}
			}()
			return elsewhereConn{client, to}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if !refused { // what listens there is no server
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		}
		_, err := conclave.Dial(ctx, conclave.Config{Servers: []string{to}, Dialer: dial, Token: func(context.Context) (string, error) {
			asked++
			return "cvt1_x", nil
		}})
		var secrecy *conclave.TLSError
		if errors.As(err, &secrecy) != refused || refused && secrecy.Problem != conclave.TokenInClear {
			t.Errorf("%s: %v", to, err)
		}
		if n := <-sent; refused && (n > 0 || asked > 0 || ctx.Err() != nil) {
			t.Errorf("%s: %d bytes were sent, the token was asked for %d times, and the context ended with %v", to, n, asked, ctx.Err())
		}
		cancel()
	}
}
