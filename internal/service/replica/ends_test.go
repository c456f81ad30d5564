package replica

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// endOf asks, by a request of the given number, to end the session of a client.
func endOf(n, request byte, reason string) registry.Command {
	return registry.Command{Op: registry.OpEnd, Session: id(n), Value: reason, By: &registry.Origin{Actor: "cert:ops", Via: "grpc", Request: [16]byte(id(request))}}
}

// A client whose session another client ends learns it at once. It may keep its holds for
// one TTL, with or without renewals, and gets no new ones. Then the session is gone.
func TestSessionEndedByAnother(t *testing.T) {
	c := started(t, 3, 31)
	c.want(c.do(open(1, 1, 2000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 60000*ms)), registry.OK)
	c.want(c.do(acquire(1, 2, "a")), registry.OK)
	c.want(c.do(acquire(2, 2, "a")), registry.Queued)
	c.want(c.do(acquire(2, 3, "b")), registry.OK)
	c.want(c.do(acquire(1, 3, "b")), registry.Queued)
	asked := c.now
	submitEnd := func(request byte) registry.Result {
		c.await().replica.Submit(c.now, 1, []registry.Command{endOf(1, request, "misbehaves")})
		return c.answerTo(id(request), 0)
	}
	c.want(submitEnd(101), registry.OK)
	if told := c.want(c.answerTo(id(1), 2), registry.Revoked); told.Message != "misbehaves" || told.Fence == 0 {
		t.Errorf("the holder is told %+v", told)
	}
	c.want(c.answerTo(id(1), 3), registry.Cancelled)
	c.want(submitEnd(102), registry.OK) // again
	c.want(c.do(acquire(1, 4, "c")), registry.Revoked)
	for sequence := uint64(5); c.now < asked+1700*ms; sequence++ {
		c.run(200 * ms)
		if got := c.want(c.do(renew(1, sequence)), registry.OK); !slices.Equal(got.Revoked, []uint64{2}) {
			t.Fatalf("a renewal tells of %v", got.Revoked)
		}
	}
	c.replies = nil
	c.want(c.answerTo(id(2), 2), registry.OK)
	if took := c.now - asked; took < 1950*ms || took > 2300*ms {
		t.Fatalf("the hold was dropped after %d ms, the TTL is 2000 ms", took/ms)
	}
	c.want(c.answerTo(id(1), 0), registry.SessionGone)
	c.want(submitEnd(103), registry.NotFound)
	c.run(500 * ms)
	c.same()
}

// A request of a session that is being ended is answered over its own stream, even if the
// session never renewed there, because the leader may be new.
func TestRefusalOfEndedSessionGoesWhereItWasAsked(t *testing.T) {
	const home, beside = 11, 12
	c := started(t, 3, 33)
	s := c.await()
	submit := func(conn uint64, commands ...registry.Command) {
		s.replica.Submit(c.now, conn, commands)
		c.run(50 * ms)
	}
	submit(home, open(1, 1, 10_000*ms), acquire(1, 2, "x"))
	submit(home, endOf(1, 101, "misbehaves"))
	for range 2 { // the second time it was carried out before, and is answered again
		c.replies = nil
		submit(beside, acquire(1, 3, "y"))
		if len(c.replies) != 1 || c.replies[0].Conn != beside || c.replies[0].Result.Code != registry.Revoked {
			t.Errorf("the replies are %+v: want one over %d, REVOKED", c.replies, beside)
		}
	}
}

// If the owner closes its session over one stream, all other streams that renewed it are
// told. So a copy of the program learns it from one message.
func TestCloseIsToldToAllStreams(t *testing.T) {
	const closer, other, stranger = 11, 12, 13
	c := started(t, 3, 32)
	s := c.await()
	submit := func(conn uint64, commands ...registry.Command) {
		s.replica.Submit(c.now, conn, commands)
		c.run(50 * ms)
	}
	submit(other, open(1, 1, 10_000*ms), acquire(1, 2, "x"))
	submit(stranger, open(2, 1, 10_000*ms))
	submit(closer, renew(1, 3))
	c.replies = nil
	submit(closer, registry.Command{Op: registry.OpClose, Session: id(1), Sequence: 4})
	told := make(map[uint64][]registry.Code)
	for _, r := range c.replies {
		if r.Session == id(1) {
			told[r.Conn] = append(told[r.Conn], r.Result.Code)
		}
	}
	if !slices.Equal(told[closer], []registry.Code{registry.OK}) || !slices.Equal(told[other], []registry.Code{registry.SessionGone}) || len(told) != 2 {
		t.Errorf("of the close was told, by stream, %v: want OK over %d and SESSION_GONE over %d", told, closer, other)
	}
}
