package attack

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
)

// queue waits for a lock in a goroutine. The channel receives the time of the grant.
func (w *world) queue(name string) <-chan time.Time {
	w.Helper()
	s := w.attach(nil, newSecret()).open(time.Minute)
	wait := s.send(acquiring(name))
	s.expect(wait, api.Code_CODE_QUEUED)
	granted := make(chan time.Time, 1)
	go func() {
		defer close(granted)
		for {
			frame, err := s.Recv()
			if err != nil {
				return
			}
			if slices.ContainsFunc(frame.GetReplies(), func(r *api.Reply) bool {
				return r.GetSequence() == wait && r.GetCode() == api.Code_CODE_OK
			}) {
				granted <- time.Now()
				return
			}
		}
	}()
	return granted
}

func await(t *testing.T, granted <-chan time.Time) time.Time {
	t.Helper()
	select {
	case at, ok := <-granted:
		if !ok {
			t.Fatal("the stream of the one who waits has ended")
		}
		return at
	case <-time.After(testTimeout):
		t.Fatal("the one who waits is granted nothing")
	}
	return time.Time{}
}

func endSession(w *world) {
	v := w.victim()
	granted := w.queue(v.name)
	operator := w.program()
	holds, err := admin.New(operator).EndSession(w.within(), v.client.SessionID(), "a7 goes down")
	if err != nil || holds != 1 {
		w.Fatalf("the end of %s is answered with %d, %v", v.client.SessionID(), holds, err)
	}
	select {
	case <-v.lock.Context().Done():
	case <-time.After(testTimeout):
		w.Fatal("the victim is told nothing")
	}
	var revoked *conclave.RevokedError
	if cause := context.Cause(v.lock.Context()); !errors.As(cause, &revoked) || revoked.Reason != "a7 goes down" {
		w.Errorf("the victim is told %v", cause)
	}
	// The program keeps its lock until it has stopped its work.
	select {
	case <-granted:
		w.Fatal("somebody enters before the victim has left")
	default:
	}
	if now := w.holder(nil, v.name); now.GetFence() != v.before.GetFence() || !now.GetRevoked() || now.GetReason() != "a7 goes down" {
		w.Errorf("the holder is %v", now)
	}
	if err := v.lock.Unlock(w.within()); err != nil {
		w.Errorf("the victim cannot leave: %v", err)
	}
	await(w.T, granted)
	if _, err := admin.New(operator).EndSession(w.within(), "s-"+hexOf(v.before.GetSession()), "again"); !errors.Is(err, conclave.ErrNotFound) {
		w.Errorf("the end of a session that is gone: %v", err)
	}
	// The program continues in a new session.
	if again, err := v.client.Lock(w.within(), w.prefix+"other"); err != nil {
		w.Errorf("the victim's program has no session any more: %v", err)
	} else if err := again.Unlock(w.within()); err != nil {
		w.Error(err)
	}
}

func ignoreTheEnd(w *world) {
	const ttl = time.Second
	name := w.prefix + "lock"
	s := w.attach(nil, newSecret()).open(ttl)
	hold := s.send(acquiring(name))
	s.expect(hold, api.Code_CODE_OK)
	granted := w.queue(name)
	operator, _ := w.dial(w.cluster.Follower(), nil)
	begun := time.Now()
	answer, err := operator.EndSession(w.within(), &api.EndSessionRequest{Id: s.id, Reason: "it hangs"})
	if err != nil || answer.GetHolds() != 1 {
		w.Fatalf("got %v, %v", answer, err)
	}
	s.expect(hold, api.Code_CODE_REVOKED)
	refused := 0
	for {
		select {
		case at, ok := <-granted:
			if !ok || at.Sub(begun) < ttl {
				w.Fatalf("somebody enters %v after the end, with a TTL of %v", at.Sub(begun), ttl)
			}
			if refused == 0 {
				w.Error("the session was never refused anything")
			}
			if r := s.reply(s.send(renewal())); r.GetCode() != api.Code_CODE_SESSION_GONE {
				w.Errorf("a renewal after the end: %v", r)
			}
			return
		default:
		}
		if time.Since(begun) > testTimeout {
			w.Fatal("nobody else ever enters")
		}
		switch renewed := s.reply(s.send(renewal())); renewed.GetCode() {
		case api.Code_CODE_OK:
			if !slices.Contains(renewed.GetRevoked(), hold) {
				w.Fatalf("a renewal does not tell of the end: %v", renewed)
			}
		case api.Code_CODE_SESSION_GONE:
			continue
		default:
			w.Fatalf("a renewal is answered with %v", renewed)
		}
		switch acquired := s.reply(s.send(acquiring(w.prefix + "another"))); acquired.GetCode() {
		case api.Code_CODE_REVOKED:
			refused++
		case api.Code_CODE_SESSION_GONE:
		default:
			w.Fatalf("it acquires: %v", acquired)
		}
	}
}

func closeACopy(w *world) {
	secret := newSecret()
	first := w.attach(nil, secret).open(time.Minute)
	first.expect(first.send(acquiring(w.prefix+"lock")), api.Code_CODE_OK)
	second := w.attach(nil, secret)
	second.next = 100
	second.expect(second.send(renewal()), api.Code_CODE_OK)
	first.expect(first.send(closing()), api.Code_CODE_OK)
	// The second copy sends no requests, and its next renewal is not due soon.
	for {
		second.receive()
		for _, replies := range second.early {
			if slices.ContainsFunc(replies, func(r *api.Reply) bool { return r.GetCode() == api.Code_CODE_SESSION_GONE }) {
				return
			}
		}
	}
}
