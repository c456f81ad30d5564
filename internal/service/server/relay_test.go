package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// relayed is how a client asks a server to pass its stream on.
func relayed(t *testing.T) context.Context {
	return metadata.AppendToOutgoingContext(within(t), "conclave-relay", "1")
}

// A stream through a follower works like one to the leader, with the same caller.
func TestAFollowerRelaysAStream(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 3, authority.Secure)
	batch := authority.Client("batch")
	follower, leader := c.Follower(), c.Leader()
	s := attachWithin(relayed(t), t, dial(t, c.Address(follower), batch))
	if s.welcome.GetServer() != uint64(follower) {
		t.Errorf("the welcome is that of server %d", s.welcome.GetServer())
	}
	opened := s.do(open(time.Minute), api.Code_CODE_OK)
	if !bytes.Equal(opened.GetSession(), s.session) || bytes.Equal(opened.GetId(), s.session) {
		t.Errorf("the session %x is answered as %x, with the id %x", s.session, opened.GetSession(), opened.GetId())
	}
	if owner := ownerOf(t, dial(t, c.Address(leader), batch)); owner != "cert:batch" {
		t.Errorf("the owner is %q", owner)
	}
	held := s.do(acquire("x"), api.Code_CODE_OK)
	waits := s.send(acquire("x"))
	s.expect(waits, api.Code_CODE_QUEUED)
	s.do(release(held.GetSequence()), api.Code_CODE_OK)
	if granted := s.expect(waits, api.Code_CODE_OK); granted.GetFence() <= held.GetFence() {
		t.Errorf("the fence %d follows %d", granted.GetFence(), held.GetFence())
	}

	direct := attach(t, dial(t, c.Address(leader), batch))
	direct.session, direct.next = s.session, s.next
	if again := direct.do(renew(), api.Code_CODE_OK); !bytes.Equal(again.GetId(), opened.GetId()) {
		t.Errorf("through the follower it has the id %x, at the leader %x", opened.GetId(), again.GetId())
	}

	// What cannot be the secret of a session is refused here, and nothing else ends.
	bad := renew()
	bad.Session, bad.Sequence = []byte("short"), 77
	s.sendRaw(bad)
	if refused := s.expect(77, api.Code_CODE_INVALID); !bytes.Equal(refused.GetSession(), bad.Session) {
		t.Errorf("got %v", refused)
	}
	s.do(renew(), api.Code_CODE_OK)
	last := s.send(renew())
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.expect(last, api.Code_CODE_OK) // what was asked before the end is answered
	if err := s.end(); !errors.Is(err, io.EOF) || s.farewell != nil {
		t.Errorf("the stream ends with %v, %v", err, s.farewell)
	}
}

// When another server leads, or this one stops, the client is told, and connects to the
// leader.
func TestARelayEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	old, follower := c.Leader(), c.Follower()
	s := attachWithin(relayed(t), t, dial(t, c.Address(follower), nil))
	s.do(open(time.Minute), api.Code_CODE_OK)
	c.Stop(old)
	if err := s.end(); !errors.Is(err, io.EOF) || s.farewell.GetCode() != api.Code_CODE_NOT_LEADER {
		t.Fatalf("the stream ends with %v, %v", err, s.farewell)
	}
	c.Restart(old)
	leader := c.Leader()
	rest := 6 - leader - old
	again := attachWithin(relayed(t), t, dial(t, c.Address(rest), nil))
	again.session, again.next = s.session, s.next
	again.do(renew(), api.Code_CODE_OK)
	c.Stop(rest)
	if err := again.end(); !errors.Is(err, io.EOF) || again.farewell.GetCode() != api.Code_CODE_NOT_LEADER || again.farewell.GetLeader() != c.Address(leader) {
		t.Errorf("the stream ends with %v, %v; the leader is at %s", err, again.farewell, c.Address(leader))
	}
}

// If there is no leader to forward it to, a stream ends as without a relay.
func TestNothingToRelayTo(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	rest := c.Follower()
	for id := 1; id <= 3; id++ {
		if id != rest {
			c.Stop(id)
		}
	}
	s := attachWithin(relayed(t), t, dial(t, c.Address(rest), nil))
	if err := s.end(); !errors.Is(err, io.EOF) || s.farewell.GetCode() != api.Code_CODE_NOT_LEADER {
		t.Errorf("the stream ends with %v, %v", err, s.farewell)
	}
}

// If a client reads no replies, only that client is cut off. Others reach the leader over
// the same connection between the servers.
func TestARelayedClientThatTakesNothing(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1) // alone it leads however busy the machine is
	leader := dial(t, c.Server(c.Leader()).PeerAddr().String(), nil)
	good := attachWithin(passedOn(within(t), "cert:good"), t, leader)
	good.do(open(time.Minute), api.Code_CODE_OK)
	held := good.do(acquire("x"), api.Code_CODE_OK)

	bad := attachWithin(passedOn(within(t), "cert:bad"), t, leader)
	const frames, each = 100, 1000
	for range frames { // a session has at most 1,024 answers that it does not acknowledge
		bad.session, bad.next = newSession(), 1
		bad.do(open(time.Minute), api.Code_CODE_OK)
		var waits []*api.Request
		for range each {
			r := acquire("x")
			r.GetAcquire().Shared = true
			waits = append(waits, r)
		}
		first := bad.send(waits...)
		for n := range uint64(each) {
			bad.expect(first+n, api.Code_CODE_QUEUED)
		}
	}
	good.do(release(held.GetSequence()), api.Code_CODE_OK) // grants all of them
	servertest.Eventually(t, "the client that takes nothing is cut off", func() bool {
		return bad.Context().Err() != nil || bad.SendMsg(&api.ClientFrame{}) != nil
	})
	good.do(renew(), api.Code_CODE_OK)
}
