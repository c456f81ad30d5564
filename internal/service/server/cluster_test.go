package server_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func TestAnyServerTakesCalls(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	session := newSession()
	fence := uint64(0)
	once(t, dial(t, c.Address(c.Follower()), nil), session, open(time.Minute), api.Code_CODE_OK)
	for id := 1; id <= 3; id++ {
		client := dial(t, c.Address(id), nil)
		r := once(t, client, session, acquire("x"), api.Code_CODE_OK)
		if r.GetFence() <= fence {
			t.Errorf("the fence %d follows %d", r.GetFence(), fence)
		}
		fence = r.GetFence()
		page, err := client.List(t.Context(), &api.ListRequest{})
		if err != nil || len(page.GetResources()) != 1 || page.GetResources()[0].GetHolders()[0].GetFence() != fence {
			t.Errorf("server %d lists %v, %v", id, page, err)
		}
		sessions, err := client.Sessions(t.Context(), &api.SessionsRequest{})
		if err != nil || len(sessions.GetSessions()) != 1 || sessions.GetSessions()[0].GetRemainingNs() == 0 {
			t.Errorf("server %d lists %v, %v", id, sessions, err)
		}
		bounded(t, client, session, acquire("x"), time.Second, api.Code_CODE_TIMEOUT)
		once(t, client, session, release(r.GetSequence()), api.Code_CODE_OK)
	}
}

func TestStaleListsComeFromTheServerItself(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	follower := dial(t, c.Address(c.Follower()), nil)
	session := newSession()
	once(t, follower, session, open(time.Minute), api.Code_CODE_OK)
	once(t, follower, session, acquire("x"), api.Code_CODE_OK)
	servertest.Eventually(t, "the follower has applied it", func() bool {
		page, err := follower.List(t.Context(), &api.ListRequest{Stale: true})
		return err == nil && len(page.GetResources()) == 1
	})
	sessions, err := follower.Sessions(t.Context(), &api.SessionsRequest{Stale: true})
	if err != nil || len(sessions.GetSessions()) != 1 || sessions.GetSessions()[0].GetRemainingNs() != 0 {
		t.Errorf("got %v, %v", sessions, err)
	}
}

// A call is forwarded only once: two servers that take each other for the leader must not
// send it back and forth.
func TestAPassedOnCallGoesNoFurther(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	leader := c.Leader()
	client := dial(t, c.Server(c.Follower()).PeerAddr().String(), nil)
	ctx := passedOn(within(t), "")
	r := renew()
	r.Session, r.Sequence = newSession(), 1
	reply, err := client.Do(ctx, r)
	if err != nil || reply.GetCode() != api.Code_CODE_NOT_LEADER || reply.GetLeader() != c.Address(leader) {
		t.Errorf("got %v, %v; the leader is at %s", reply, err, c.Address(leader))
	}
	var trailer metadata.MD
	_, err = client.List(ctx, &api.ListRequest{}, grpc.Trailer(&trailer))
	if status.Code(err) != codes.FailedPrecondition || len(trailer["conclave-leader"]) != 1 || trailer["conclave-leader"][0] != c.Address(leader) {
		t.Errorf("got %v with %v", err, trailer)
	}
	s := attachWithin(ctx, t, client)
	if err := s.end(); !errors.Is(err, io.EOF) || s.farewell.GetCode() != api.Code_CODE_NOT_LEADER {
		t.Errorf("a stream ends with %v, %v", err, s.farewell)
	}
}

func TestAFollowerEndsStreamsAndNamesTheLeader(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	leader, client := c.Leader(), dial(t, c.Address(c.Follower()), nil)
	s := attach(t, client)
	if err := s.end(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if s.farewell.GetCode() != api.Code_CODE_NOT_LEADER || s.farewell.GetLeader() != c.Address(leader) || s.farewell.GetMessage() == "" {
		t.Errorf("got %v; the leader is at %s", s.farewell, c.Address(leader))
	}
	watch, err := client.Observe(within(t), &api.ObserveRequest{Name: "e"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = watch.Recv()
	if at := watch.Trailer()["conclave-leader"]; status.Code(err) != codes.FailedPrecondition || len(at) != 1 || at[0] != c.Address(leader) {
		t.Errorf("got %v, leader %v", err, at)
	}
}

func TestALeaderThatStopsSaysFarewellAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	old := c.Leader()
	s := attach(t, dial(t, c.Address(old), nil))
	s.do(open(time.Minute), api.Code_CODE_OK)
	held := s.do(acquire("x"), api.Code_CODE_OK)
	s.do(acquire("x"), api.Code_CODE_QUEUED)
	watch, err := dial(t, c.Address(old), nil).Observe(within(t), &api.ObserveRequest{Name: "e"})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := watch.Recv(); err != nil || o.GetElected() {
		t.Fatal(o, err)
	}

	c.Stop(old)
	if err := s.end(); !errors.Is(err, io.EOF) {
		t.Fatalf("the stream ends with %v", err)
	}
	leader := c.Leader()
	if s.farewell.GetCode() != api.Code_CODE_NOT_LEADER || s.farewell.GetLeader() != c.Address(leader) {
		t.Errorf("got %v; the leader is at %s", s.farewell, c.Address(leader))
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the observation ends with %v", err)
	}

	// The session continues with the new leader: it still holds, and its waiting
	// request is found in the queue.
	other := attach(t, dial(t, c.Address(leader), nil))
	other.session, other.next = s.session, 2
	if again := other.do(acquire("x"), api.Code_CODE_OK); again.GetFence() != held.GetFence() {
		t.Errorf("after the change of leaders the hold has the fence %d, before it %d", again.GetFence(), held.GetFence())
	}
	other.do(acquire("x"), api.Code_CODE_QUEUED)
	other.do(release(2), api.Code_CODE_OK)
	if granted := other.expect(3, api.Code_CODE_OK); granted.GetFence() <= held.GetFence() {
		t.Errorf("the fence %d follows %d", granted.GetFence(), held.GetFence())
	}
	c.Restart(old)
	c.Leader()
}

// A call that waits does not notice that the leader changes under it.
func TestAWaitingCallSurvivesAChangeOfLeaders(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	old := c.Leader()
	client, session := dial(t, c.Address(c.Follower()), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	held := once(t, client, session, acquire("x"), api.Code_CODE_OK)
	granted := make(chan *api.Reply, 1)
	go func() {
		r := acquire("x")
		r.Session = session
		reply, _ := client.Do(context.Background(), r)
		granted <- reply
	}()
	awaitQueue(t, client, "x", 1)
	c.Stop(old)
	once(t, client, session, release(held.GetSequence()), api.Code_CODE_OK)
	if r := <-granted; r.GetCode() != api.Code_CODE_OK || r.GetFence() <= held.GetFence() {
		t.Errorf("got %v after the fence %d", r, held.GetFence())
	}
}

func TestWithoutAQuorumCallsEndAtTheirDeadline(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	rest := c.Follower()
	client, session := dial(t, c.Address(rest), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	for id := 1; id <= 3; id++ {
		if id != rest {
			c.Stop(id)
		}
	}
	for _, r := range []*api.Request{renew(), acquire("x"), try("x")} {
		begun := time.Now()
		bounded(t, client, session, r, 2*time.Second, api.Code_CODE_UNAVAILABLE)
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%v took %v", r, took)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := client.List(ctx, &api.ListRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a list: %v", err)
	}
	if page, err := client.List(t.Context(), &api.ListRequest{Stale: true}); err != nil || len(page.GetResources()) != 0 {
		t.Errorf("a stale list: %v, %v", page, err)
	}
	s := attach(t, client)
	if err := s.end(); !errors.Is(err, io.EOF) || s.farewell.GetCode() != api.Code_CODE_NOT_LEADER {
		t.Errorf("a stream ends with %v, %v", s.farewell, err)
	}
	if answer, err := client.Status(t.Context(), &api.StatusRequest{}); err != nil || answer.GetServer() != uint64(rest) {
		t.Errorf("the status: %v, %v", answer, err)
	}
}

func TestObserveTellsWhoLeads(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	client, session := dial(t, c.Address(c.Leader()), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	watch, err := client.Observe(within(t), &api.ObserveRequest{Name: "e"})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(elected bool, value string) *api.Observation {
		t.Helper()
		o, err := watch.Recv()
		if err != nil || o.GetName() != "e" || o.GetElected() != elected || string(o.GetLeader().GetValue()) != value {
			t.Fatalf("got %v, %v; want %v %q", o, err, elected, value)
		}
		return o
	}
	expect(false, "")
	led := once(t, client, session, campaign("e", "one"), api.Code_CODE_OK)
	if o := expect(true, "one"); o.GetLeader().GetFence() != led.GetFence() {
		t.Errorf("got %v, the fence is %d", o, led.GetFence())
	}
	once(t, client, session, campaign("other", "x"), api.Code_CODE_OK)
	once(t, client, session, update(led.GetSequence(), "two"), api.Code_CODE_OK)
	expect(true, "two")
	once(t, client, session, release(led.GetSequence()), api.Code_CODE_OK)
	expect(false, "")
	bad, err := client.Observe(within(t), &api.ObserveRequest{Name: ""})
	if err == nil {
		_, err = bad.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("an empty name: %v", err)
	}
}

func TestStatusDescribesTheCluster(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	leader := c.Leader()
	client := dial(t, c.Address(leader), nil)
	servertest.Eventually(t, "the leader knows where all members are", func() bool {
		answer, err := client.Status(t.Context(), &api.StatusRequest{})
		if err != nil || answer.GetLeader() != uint64(leader) || answer.GetCluster() != c.Server(1).Cluster() || len(answer.GetMembers()) != 3 {
			t.Fatalf("got %v, %v", answer, err)
		}
		if answer.GetSnapshotIndex() == 0 || answer.GetAppliedIndex() < answer.GetSnapshotIndex() {
			t.Fatalf("the newest snapshot is at %d", answer.GetSnapshotIndex())
		}
		known := 0
		for i, m := range answer.GetMembers() {
			if m.GetId() == uint64(i+1) && m.GetClientAddress() == c.Address(i+1) && m.GetVoter() && m.GetConnected() &&
				m.GetMatchIndex() > 0 && m.GetLeader() == (i+1 == leader) {
				known++
			}
		}
		return known == 3
	})
}
