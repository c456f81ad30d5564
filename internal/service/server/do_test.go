package server_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// once carries out one request of a session, which the server numbers.
func once(t *testing.T, client api.ConclaveClient, session []byte, r *api.Request, want api.Code) *api.Reply {
	t.Helper()
	return bounded(t, client, session, r, limit, want)
}

func bounded(t *testing.T, client api.ConclaveClient, session []byte, r *api.Request, limit time.Duration, want api.Code) *api.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r.Session = session
	reply, err := client.Do(ctx, r)
	if err != nil {
		t.Fatalf("%v: %v", r, err)
	}
	if reply.GetCode() != want {
		t.Fatalf("%v is answered with %v, want %v", r, reply, want)
	}
	return reply
}

func TestDoCarriesOutWhatAProgramNeeds(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	if r := once(t, client, session, open(time.Minute), api.Code_CODE_OK); r.GetRemainingNs() != int64(time.Minute) {
		t.Errorf("the session has %d ns", r.GetRemainingNs())
	}
	held := once(t, client, session, acquire("x"), api.Code_CODE_OK)
	once(t, client, session, try("x"), api.Code_CODE_HELD)
	once(t, client, session, renew(), api.Code_CODE_OK)
	once(t, client, session, release(held.GetSequence()), api.Code_CODE_OK)
	once(t, client, session, release(held.GetSequence()), api.Code_CODE_NOT_HELD)
	led := once(t, client, session, campaign("e", "one"), api.Code_CODE_OK)
	once(t, client, session, update(led.GetSequence(), "two"), api.Code_CODE_OK)
	once(t, client, session, closing(), api.Code_CODE_OK)
	once(t, client, session, acquire("x"), api.Code_CODE_SESSION_GONE)
}

func TestDoRefusesWrongRequests(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	once(t, client, []byte("short"), renew(), api.Code_CODE_INVALID)
	once(t, client, make([]byte, 16), renew(), api.Code_CODE_INVALID)
	once(t, client, newSession(), &api.Request{}, api.Code_CODE_INVALID)
	once(t, client, newSession(), open(0), api.Code_CODE_INVALID)
	once(t, client, newSession(), acquire("x"), api.Code_CODE_SESSION_GONE)
}

func TestDoWaitsForTheGrant(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	held := once(t, client, session, acquire("x"), api.Code_CODE_OK)
	granted := make(chan *api.Reply, 1)
	go func() {
		r := acquire("x")
		r.Session = session
		reply, _ := client.Do(context.Background(), r) // without a deadline
		granted <- reply
	}()
	awaitQueue(t, client, "x", 1)
	once(t, client, session, release(held.GetSequence()), api.Code_CODE_OK)
	if r := <-granted; r.GetCode() != api.Code_CODE_OK || r.GetFence() <= held.GetFence() {
		t.Errorf("got %v after the fence %d", r, held.GetFence())
	}
}

// awaitQueue waits until n requests wait for a lock.
func awaitQueue(t *testing.T, client api.ConclaveClient, name string, length uint32) {
	t.Helper()
	servertest.Eventually(t, "the queue has its length", func() bool {
		page, err := client.List(t.Context(), &api.ListRequest{Prefix: name})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.GetResources()) == 1 && page.GetResources()[0].GetQueueLength() == length
	})
}

func TestDoLeavesTheQueueAtItsDeadline(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	held := once(t, client, session, acquire("x"), api.Code_CODE_OK)
	bounded(t, client, session, acquire("x"), time.Second, api.Code_CODE_TIMEOUT)
	awaitQueue(t, client, "x", 0)
	once(t, client, session, release(held.GetSequence()), api.Code_CODE_OK)
	once(t, client, session, try("x"), api.Code_CODE_OK)
}

func TestDoLeavesTheQueueWhenTheCallerGoes(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	once(t, client, session, acquire("x"), api.Code_CODE_OK)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		r := acquire("x")
		r.Session = session
		_, err := client.Do(ctx, r)
		ended <- err
	}()
	awaitQueue(t, client, "x", 1)
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	awaitQueue(t, client, "x", 0)
}

func TestDoCarriesOutARepeatedRequestOnce(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	numbered := func() *api.Request {
		r := acquire("x")
		r.Sequence, r.Low = 5, 5
		return r
	}
	first := once(t, client, session, numbered(), api.Code_CODE_OK)
	if again := once(t, client, session, numbered(), api.Code_CODE_OK); again.GetFence() != first.GetFence() {
		t.Errorf("the fences are %d and %d", first.GetFence(), again.GetFence())
	}
}

// After a clock was set back, the sequences of a session may be ahead of the clock.
func TestDoCatchesUpWithNumbersAheadOfTheClock(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	ahead := acquire("x")
	ahead.Sequence = uint64(time.Now().Add(10 * time.Minute).UnixMicro())
	ahead.Low = ahead.Sequence
	once(t, client, session, ahead, api.Code_CODE_OK)
	once(t, client, session, acquire("y"), api.Code_CODE_OK)
}

func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	for _, name := range []string{"a/1", "a/2", "a/3", "b/1"} {
		once(t, client, session, acquire(name), api.Code_CODE_OK)
	}
	var names []string
	req := &api.ListRequest{Prefix: "a/", Limit: 2}
	for more := true; more; {
		page, err := client.List(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.GetResources() {
			names = append(names, r.GetName())
			req.After = r.GetName()
		}
		more = page.GetMore()
	}
	if len(names) != 3 || names[0] != "a/1" || names[2] != "a/3" {
		t.Errorf("got %v", names)
	}
	if _, err := client.List(t.Context(), &api.ListRequest{Class: 9}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an unknown class: %v", err)
	}
	sessions, err := client.Sessions(t.Context(), &api.SessionsRequest{})
	if err != nil || len(sessions.GetSessions()) != 1 || sessions.GetSessions()[0].GetHolds() != 4 ||
		sessions.GetSessions()[0].GetRemainingNs() <= 0 || sessions.GetMore() {
		t.Errorf("got %v, %v", sessions, err)
	}
	if _, err := client.Sessions(t.Context(), &api.SessionsRequest{After: []byte("x")}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a wrong session: %v", err)
	}
}
