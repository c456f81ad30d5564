package server_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// askAndLeave sends a request and the end of the connection together. Otherwise a busy machine could run
// the server between the two: it would answer a caller that is still there.
func askAndLeave(t *testing.T, address, path, body string) {
	t.Helper()
	conn := dialCorked(t, address)
	post(t, conn, path, body)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// dialCorked opens a connection that sends only full segments, and the rest when it is closed.
func dialCorked(t *testing.T, address string) net.Conn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CORK, 1) })
		return errors.Join(failed, err)
	}}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// A caller that closes the connection as soon as it has sent its request does not get the
// answer. Whatever it asked for, nothing stays behind that it does not know.
func TestJSONACallerThatLeavesKeepsNothing(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	for _, id := range []int{c.Leader(), c.Follower()} {
		b := browse(t, c.Address(id))
		session := b.post("/v1/open", `{"ttl":"1h"}`)["session"]
		for i := range 20 {
			for call, more := range map[string]string{"acquire": "", "campaign": "", "acquire ": `,"try":true`, "campaign ": `,"wait":"1m"`} {
				body := fmt.Sprintf(`{"session":%q,"name":"%s%d"%s}`, session, call, i, more)
				askAndLeave(t, c.Address(id), "/v1/"+strings.TrimSpace(call), body)
			}
		}
		b.get("/v1/sessions") // everything before it has been carried out
		b.nothingHeld()
	}
}
