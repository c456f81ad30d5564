package server_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// No present browser sends a request without a host. Such a request is answered like one
// for another host.
func TestNoHost(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	conn, err := net.Dial("tcp", c.Address(1))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /v1/sessions HTTP/1.0\r\n\r\n")
	text, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.0 421 ") {
		t.Errorf("%s, %v", text, err)
	}
}
