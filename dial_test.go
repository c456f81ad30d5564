package conclave_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// listen serves nothing but what accept does with each connection.
func listen(t *testing.T, accept func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			accept(conn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func TestDialSaysWhatEachServerSaid(t *testing.T) {
	refusing := listen(t, func(net.Conn) {})
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	closed.Close()
	stopped := refusing // takes connections and never says a word
	web := listen(t, func(conn net.Conn) { conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	other := grpc.NewServer()
	otherListener, _ := net.Listen("tcp", "127.0.0.1:0")
	go other.Serve(otherListener)
	defer other.Stop()

	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	_, err := conclave.Dial(ctx, conclave.Config{Servers: []string{closed.Addr().String(), stopped, web, otherListener.Addr().String()}})
	var failed *conclave.DialError
	if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "\n") {
		t.Fatal(err)
	}
	var said []string
	for _, a := range failed.Attempts {
		said = append(said, a.Err.Error())
	}
	want := []string{"connection refused", "no answer within 1s", "not a Conclave server, or a server that requires TLS or a client certificate", "not a Conclave server"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

func TestDialWithTLSToAPlainServer(t *testing.T) {
	web := listen(t, func(conn net.Conn) { conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := conclave.Dial(ctx, conclave.Config{Servers: []string{web}, TLS: &tls.Config{}})
	if err == nil || !strings.Contains(err.Error(), "TLS: the server does not speak TLS") {
		t.Fatal(err)
	}
}

// A sentence that several servers have in common is said once.
func TestErrorsSayASentenceOnce(t *testing.T) {
	const sentence = "the same for all"
	same := []conclave.Attempt{{Server: "a:1", Err: errors.New(sentence)}, {Server: "b:1", Err: errors.New(sentence)}, {Server: "c:1", Err: errors.New("another")}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&conclave.DialError{Attempts: same[:2], Err: errors.New(sentence)}, "conclave: no server to attach to: a:1, b:1: the same for all"},
		{&conclave.DialError{Attempts: same, Err: context.DeadlineExceeded}, "conclave: no server to attach to: context deadline exceeded: a:1, b:1: the same for all; c:1: another"},
		{&conclave.UnavailableError{Op: "lock", Name: "x", Attempts: same, Err: context.DeadlineExceeded}, `conclave: lock "x": context deadline exceeded: ` + conclave.ErrUnavailable.Error() + "; a:1, b:1: the same for all; c:1: another"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestWrongCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 2)
		cfg := cl.Config()
		cfg.Cluster = "00000000000000c2"
		began := time.Now()
		_, err := conclave.Dial(cl.Context(t.Context()), cfg)
		if !errors.Is(err, conclave.ErrWrongCluster) || time.Since(began) > time.Second ||
			!strings.Contains(err.Error(), "it belongs to 00000000000000c1, not to 00000000000000c2") {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		cfg.Cluster = "00000000000000C1"
		c, err := conclave.Dial(cl.Context(t.Context()), cfg)
		if err != nil || c.Cluster() != "00000000000000c1" {
			t.Fatal(err)
		}
		c.Close()
	})
}

func TestServerOfAnotherClusterIsNeverUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, foreign := clienttest.New(t, 1), clienttest.New(t, 1)
		foreign.Identity = "00000000000000ff"
		foreign.Servers[0].Address = "foreign.test:7400"
		cfg := ours.Config()
		cfg.Servers = append(cfg.Servers, "foreign.test:7400")
		cfg.Cluster = ours.Identity
		cfg.Dialer = func(ctx context.Context, address string) (net.Conn, error) {
			if address == "foreign.test:7400" {
				return foreign.Dial(ctx, address)
			}
			return ours.Dial(ctx, address)
		}
		c, err := conclave.Dial(ours.Context(t.Context()), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clienttest.Lock(t, c, "x")
		ours.Servers[0].Kill()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = c.Lock(ctx, "y")
		if err == nil || !strings.Contains(err.Error(), "foreign.test:7400: wrong cluster") || !strings.Contains(err.Error(), "connection refused") {
			t.Fatal(err)
		}
		foreign.Inspect(func(st *clienttest.State) {
			if st.Opened != 0 {
				t.Error("a session was opened in another cluster")
			}
		})
		if _, err := admin.New(c).Status(ctx); err == nil {
			t.Error("the status of another cluster was taken")
		}
	})
}

// TestDialDoesNotWaitForTLS: what no waiting mends is reported at once.
func TestDialDoesNotWaitForTLS(t *testing.T) {
	plain := listen(t, func(conn net.Conn) { conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	for address, want := range map[string]conclave.TLSProblem{plain: conclave.NoTLS, secure.Listener.Addr().String(): conclave.UnknownAuthority} {
		began := time.Now()
		_, err := conclave.Dial(t.Context(), conclave.Config{Servers: []string{address}, TLS: &tls.Config{}})
		var secrecy *conclave.TLSError
		if !errors.As(err, &secrecy) || secrecy.Problem != want || errors.Is(err, conclave.ErrUnavailable) {
			t.Errorf("got %v, want problem %d", err, want)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Dial took %v", took)
		}
	}
	// One server that may come back is enough to continue.
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	closed.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := conclave.Dial(ctx, conclave.Config{Servers: []string{plain, closed.Addr().String()}, TLS: &tls.Config{}}); !errors.Is(err, conclave.ErrUnavailable) {
		t.Errorf("with a server that is down: %v, want ErrUnavailable", err)
	}
}
