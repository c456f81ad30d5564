package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/listen"
)

// impatient starts a server that waits for nobody.
func impatient(t *testing.T) *Server {
	t.Helper()
	s, err := Start(config.Server{
		Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", PeerListen: "127.0.0.1:0",
		Log: slog.New(slog.DiscardHandler), IOTimeout: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSlowClientsAreNotWaitedFor(t *testing.T) {
	s := impatient(t)
	for _, says := range []string{
		"",
		"POST /v1/open HTTP/1.1\r\nHost: localhost\r\n",
		"POST /v1/open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		listen.Preface,
	} {
		conn := dial(t, s.Addr())
		io.WriteString(conn, says)
		begun := time.Now()
		if got := said(conn); strings.Contains(got, " 200 ") || time.Since(begun) > 10*time.Second {
			t.Errorf("after %q: %q, after %v", says, got, time.Since(begun))
		}
	}
}

// What a request asks for may take longer than the request itself.
func TestAWaitIsNotASlowRequest(t *testing.T) {
	s := impatient(t)
	conn := dial(t, s.Addr())
	in := bufio.NewReader(conn)
	post := func(path, body string) (int, string) {
		t.Helper()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	const session = "0123456789abcdef0123456789abcdef"
	for _, step := range []struct {
		path, body string
		want       int
	}{
		{"/v1/open", `{"session":"` + session + `"}`, 200},
		{"/v1/acquire", `{"session":"` + session + `","name":"x"}`, 200},
		{"/v1/acquire", `{"session":"` + session + `","name":"x","wait":"1s"}`, 423},
		{"/v1/renew", `{"session":"` + session + `"}`, 200},
	} {
		if code, text := post(step.path, step.body); code != step.want {
			t.Errorf("%s %s: %d %s", step.path, step.body, code, text)
		}
	}
}

func dial(t *testing.T, address net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// said returns all bytes until the other side closes. A reset counts as the end.
func said(conn net.Conn) string {
	text, _ := io.ReadAll(conn)
	return string(text)
}
