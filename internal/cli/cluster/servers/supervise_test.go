package servers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// notifySocket plays the socket that systemd gives a service.
type notifySocket struct {
	t    *testing.T
	conn *net.UnixConn
}

func newNotifySocket(t *testing.T) notifySocket {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return notifySocket{t, conn}
}

// next returns the next message, or "" if none comes within a time.
func (s notifySocket) next(within time.Duration) string {
	s.t.Helper()
	b := make([]byte, 4096)
	_ = s.conn.SetReadDeadline(time.Now().Add(within))
	n, err := s.conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b[:n])
}

// until returns the messages up to one that is wanted, which comes in time.
func (s notifySocket) until(want string) (before []string) {
	s.t.Helper()
	for {
		got := s.next(20 * time.Second)
		if got == want {
			return before
		}
		if got == "" {
			s.t.Fatalf("systemd is not told %q, but %q", want, before)
		}
		before = append(before, got)
	}
}

// patient is a server whose loop may hang.
type patient struct {
	hangs atomic.Bool
	state atomic.Value
}

func (p *patient) State() string { return p.state.Load().(string) }

func (p *patient) Alive(ctx context.Context) error {
	if p.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// TestSupervisorIsTold: the server reports that it is ready, its state, that it is alive,
// and that it stops. A server whose loop hangs does not report that it is alive.
func TestSupervisorIsTold(t *testing.T) {
	socket := newNotifySocket(t)
	const timeout = 300 * time.Millisecond
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(timeout.Microseconds(), 10))
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	p := new(patient)
	p.state.Store("no leader is known")
	stopping := supervise(p, slog.New(slog.DiscardHandler))
	if got := socket.next(time.Second); got != "READY=1\nSTATUS=no leader is known" {
		t.Errorf("at first systemd is told %q", got)
	}
	socket.until("WATCHDOG=1")
	socket.until("WATCHDOG=1")
	p.state.Store("leader in term 2")
	socket.until("STATUS=leader in term 2")
	p.hangs.Store(true)
	for socket.next(timeout) != "" { // what was under way
	}
	if got := socket.next(2 * timeout); got != "" {
		t.Errorf("while its loop hangs the server says %q", got)
	}
	p.hangs.Store(false)
	socket.until("WATCHDOG=1")
	stopping()
	socket.until("STOPPING=1")
}

// TestSupervisorThatIsNone: without systemd nobody is told anything, and nothing is said.
func TestSupervisorThatIsNone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	p, log := new(patient), new(bytes.Buffer)
	p.state.Store("")
	supervise(p, slog.New(slog.NewTextHandler(log, nil)))()
	if log.Len() > 0 {
		t.Errorf("the log says %q", log)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	supervise(p, slog.New(slog.NewTextHandler(log, nil)))()
	if !strings.Contains(log.String(), "report to systemd failed") {
		t.Errorf("the log says %q", log)
	}
}
