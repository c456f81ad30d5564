package server_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func TestAttachWelcomes(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	s := attach(t, dial(t, c.Address(1), nil))
	if s.welcome.GetServer() != 1 || s.welcome.GetVersion() != 1 || s.welcome.GetCluster() != c.Server(1).Cluster() {
		t.Errorf("got %v", s.welcome)
	}
	if len(s.welcome.GetCluster()) != 16 {
		t.Errorf("the identity of the cluster is %q", s.welcome.GetCluster())
	}
}

func TestAttachQueuesAndGrantsInOrder(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	a, b, d := attach(t, client), attach(t, client), attach(t, client)
	for _, s := range []*stream{a, b, d} {
		s.do(open(time.Minute), api.Code_CODE_OK)
	}
	first := a.do(acquire("x"), api.Code_CODE_OK)
	if second := b.do(acquire("x"), api.Code_CODE_QUEUED); second.GetAhead() != 0 {
		t.Errorf("%d are ahead of the first in the queue", second.GetAhead())
	}
	if third := d.do(acquire("x"), api.Code_CODE_QUEUED); third.GetAhead() != 1 {
		t.Errorf("%d are ahead of the second in the queue", third.GetAhead())
	}
	a.do(release(2), api.Code_CODE_OK)
	second := b.expect(2, api.Code_CODE_OK)
	b.do(release(2), api.Code_CODE_OK)
	third := d.expect(2, api.Code_CODE_OK)
	if first.GetFence() == 0 || second.GetFence() <= first.GetFence() || third.GetFence() <= second.GetFence() {
		t.Errorf("the fences are %d, %d, %d", first.GetFence(), second.GetFence(), third.GetFence())
	}
}

func TestAttachCarriesOutARepeatedRequestOnce(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	s := attach(t, client)
	s.do(open(time.Minute), api.Code_CODE_OK)
	first := s.do(acquire("x"), api.Code_CODE_OK)
	// The same request again, over another stream, as after a broken one.
	other := attach(t, client)
	other.session, other.next = s.session, 2
	if again := other.do(acquire("x"), api.Code_CODE_OK); again.GetFence() != first.GetFence() {
		t.Errorf("a request sent again has the fence %d, at first %d", again.GetFence(), first.GetFence())
	}
	other.do(release(2), api.Code_CODE_OK)
	other.do(release(2), api.Code_CODE_NOT_HELD)
}

func TestAttachSaysWhoHolds(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	s := attach(t, dial(t, c.Address(1), nil))
	s.do(open(time.Minute), api.Code_CODE_OK)
	held := s.do(acquire("x"), api.Code_CODE_OK)
	refused := s.do(try("x"), api.Code_CODE_HELD)
	if h := refused.GetHolder(); h.GetFence() != held.GetFence() || h.GetPid() != 7 || h.GetProgram() != "test" {
		t.Errorf("the holder is %v", h)
	}
}

func TestAttachCancels(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	s := attach(t, dial(t, c.Address(1), nil))
	s.do(open(time.Minute), api.Code_CODE_OK)
	s.do(acquire("x"), api.Code_CODE_OK)
	s.do(acquire("x"), api.Code_CODE_QUEUED)
	s.do(cancel(3), api.Code_CODE_OK)
	s.expect(3, api.Code_CODE_CANCELLED)
	if late := s.do(cancel(2), api.Code_CODE_OK); late.GetFence() == 0 {
		t.Error("a cancel that comes too late does not say so")
	}
}

func TestAttachEndsSessionsThatAreNotRenewed(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	s, waiter := attach(t, client), attach(t, client)
	s.do(open(300*time.Millisecond), api.Code_CODE_OK)
	s.do(acquire("x"), api.Code_CODE_OK)
	waiter.do(open(time.Minute), api.Code_CODE_OK)
	waiter.do(acquire("x"), api.Code_CODE_QUEUED)
	waiter.expect(2, api.Code_CODE_OK)
	s.do(renew(), api.Code_CODE_SESSION_GONE)
	s.do(release(2), api.Code_CODE_SESSION_GONE)
}

func TestAttachRefusesWrongRequests(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	s := attach(t, dial(t, c.Address(1), nil))
	s.do(acquire("x"), api.Code_CODE_SESSION_GONE)
	s.do(open(time.Millisecond), api.Code_CODE_INVALID)
	s.do(open(2*time.Hour), api.Code_CODE_INVALID)
	s.do(open(time.Minute), api.Code_CODE_OK)
	for _, name := range []string{"", strings.Repeat("x", 513), "a\nb"} {
		if r := s.do(acquire(name), api.Code_CODE_INVALID); r.GetMessage() == "" || strings.Contains(r.GetMessage(), "\n") {
			t.Errorf("for the name %.20q the message is %q", name, r.GetMessage())
		}
	}
	s.do(&api.Request{}, api.Code_CODE_INVALID)
	s.do(&api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: "x", Class: 7}}}, api.Code_CODE_INVALID)
	s.sendRaw(&api.Request{Session: []byte("short"), Sequence: 99, Op: renew().Op})
	if r := s.expect(99, api.Code_CODE_INVALID); string(r.GetSession()) != "short" {
		t.Errorf("the refusal is for session %q", r.GetSession())
	}
	s.do(closing(), api.Code_CODE_OK)
}

func TestAttachTakesManyRequestsInAFrame(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	s := attach(t, dial(t, c.Address(1), nil))
	s.do(open(time.Minute), api.Code_CODE_OK)
	var frame []*api.Request
	for i := range 500 {
		frame = append(frame, acquire(fmt.Sprint("lock-", i)))
	}
	first := s.send(frame...)
	for i := range 500 {
		s.expect(first+uint64(i), api.Code_CODE_OK)
	}
}

func TestAttachEndsWithAFarewellForAFrameTooLong(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	s := attach(t, dial(t, c.Address(1), nil))
	var frame []*api.Request
	for range 1025 {
		frame = append(frame, renew())
	}
	s.send(frame...)
	if err := s.end(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if s.farewell.GetCode() != api.Code_CODE_INVALID || !strings.Contains(s.farewell.GetMessage(), "1025 requests") {
		t.Errorf("got %v", s.farewell)
	}
}

func TestAttachAnswersAfterTheClientSaidItsLast(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	s := attach(t, dial(t, c.Address(1), nil))
	sequence := s.send(open(time.Minute))
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.expect(sequence, api.Code_CODE_OK)
	if err := s.end(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestAttachStopsListeningToAClientThatTakesNothing(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	s := attach(t, dial(t, c.Address(1), nil))
	s.do(open(time.Minute), api.Code_CODE_OK)
	s.do(campaign("e", strings.Repeat("x", 60<<10)), api.Code_CODE_OK)
	// Each refusal says who holds, with the value; nobody reads them. So the
	// sends must block in the end, which the end of the stream undoes.
	sent := make(chan int)
	go func() {
		n := uint64(0)
		for ; n < 50000; n++ {
			r := try("e")
			r.GetAcquire().Class = api.Class_CLASS_ELECTION
			r.Session, r.Sequence, r.Low = s.session, 1000+n, 1000+n
			if s.Send(&api.ClientFrame{Requests: []*api.Request{r}}) != nil {
				break
			}
		}
		sent <- int(n)
	}()
	taken, since := uint64(0), time.Now()
	servertest.Eventually(t, "the server takes no more requests", func() bool {
		if now := c.Server(1).Node().Metrics().Requests.Load(); now != taken {
			taken, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
	c.Stop(1)
	if n := <-sent; n >= 50000 {
		t.Errorf("%d requests were taken from a client that takes no replies", n)
	}
}
