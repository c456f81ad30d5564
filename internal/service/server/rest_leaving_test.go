package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// sendPost sends a request over a connection of its own, and does not wait for the answer.
func sendPost(t *testing.T, address, path, body string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	post(t, conn, path, body)
	return conn
}

// post writes a request into a connection.
func post(t *testing.T, conn net.Conn, path, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		t.Fatal(err)
	}
}

// answerOn reads the answer to a request.
func answerOn(t *testing.T, conn net.Conn) (status int, text string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(limit))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// nothingHeld waits until nobody holds or waits for a lock or an election.
func (b *browser) nothingHeld() {
	b.t.Helper()
	for _, class := range []string{"locks", "elections"} {
		servertest.Eventually(b.t, "no "+class+" are held", func() bool { return len(b.get("/v1/" + class)[class].([]any)) == 0 })
	}
}

// Whoever waits in the queue and leaves when the lock becomes free gets it or not, but does
// not keep it.
func TestJSONWaitersThatLeaveAtTheGrantKeepNothing(t *testing.T) {
	t.Parallel()
	const waiters = 30
	c := servertest.Start(t, 3)
	b := browse(t, c.Address(c.Leader()))
	opened := b.post("/v1/open", `{"ttl":"1h"}`)["session"]
	held := b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened))
	var conns []net.Conn
	for i := range waiters {
		conns = append(conns, sendPost(t, c.Address(i%3+1), "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened)))
	}
	queued := func() int { return int(first(t, b.get("/v1/locks")["locks"])["queue_length"].(float64)) }
	servertest.Eventually(t, "all wait", func() bool { return queued() == waiters })
	go b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, opened, held["hold"]))
	for _, conn := range conns {
		conn.Close()
	}
	b.nothingHeld()
}

// A server that stops withdraws what waits there for callers over HTTP, because they cannot
// find it again.
func TestJSONAServerThatStopsWithdrawsWhatWaits(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		c := servertest.Start(t, servers)
		stops := c.Leader()
		b := browse(t, c.Address(stops))
		opened := b.post("/v1/open", `{"ttl":"1h"}`)["session"]
		held := b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened))
		conn := sendPost(t, c.Address(stops), "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x","wait":"10m"}`, opened))
		servertest.Eventually(t, "it waits", func() bool { return first(t, b.get("/v1/locks")["locks"])["queue_length"] == 1.0 })
		c.Stop(stops)
		if status, text := answerOn(t, conn); status != 503 || !strings.Contains(text, "is stopping; the request has left the queue") {
			t.Errorf("of %d: the waiting caller gets %d %s", servers, status, text)
		}
		c.Restart(stops)
		c.Leader()
		b.http.CloseIdleConnections()
		if lock := first(t, b.get("/v1/locks")["locks"]); lock["queue_length"] != 0.0 {
			t.Errorf("of %d: afterwards somebody waits: %v", servers, lock)
		}
		b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, opened, held["hold"]))
		b.nothingHeld()
	}
}

// A server that passed a request on, and is killed, leaves no place in the queue of the leader.
func TestJSONAServerThatIsGoneLeavesNoPlace(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	goes, b := c.Follower(), browse(t, c.Address(c.Leader()))
	opened := b.post("/v1/open", `{"ttl":"1h"}`)["session"]
	b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened))
	sendPost(t, c.Address(goes), "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened))
	queued := func(n float64) func() bool {
		return func() bool { return first(t, b.get("/v1/locks")["locks"])["queue_length"] == n }
	}
	servertest.Eventually(t, "it waits", queued(1))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = c.Server(goes).Stop(ended) // waits for nothing
	servertest.Eventually(t, "it waits no more", queued(0))
}
