package attack

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/api"
)

// TestWhoReadsAListReleasesNothing is the reason for public ids: earlier, the answer to GET /v1/locks
// was enough to release the lock of another client.
func TestWhoReadsAListReleasesNothing(t *testing.T) {
	w := &world{T: t, target: newTarget(t, false), prefix: "list/"}
	v := w.victim()
	listed := w.listed(v.name)
	for _, key := range []string{"session", "session_id"} {
		if shown, found := listed[key]; found {
			_, answer := w.page(1, nil, "POST", "/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, shown, listed["hold"]))
			v.same("a release with the " + key + " of the list, answered with " + answer)
		}
	}
}

// listed returns the only holder of a lock as GET /v1/locks shows it.
func (w *world) listed(name string) map[string]any {
	w.Helper()
	locks, _ := w.object(1, nil, "GET", "/v1/locks?prefix="+name, "")["locks"].([]any)
	if len(locks) != 1 {
		w.Fatalf("%q is listed %d times", name, len(locks))
	}
	holders, _ := locks[0].(map[string]any)["holders"].([]any)
	if len(holders) != 1 {
		w.Fatalf("%q has %d holders", name, len(holders))
	}
	return holders[0].(map[string]any)
}

func releaseByID(w *world) {
	byID(w, "release", func(hold, _ string) string { return fmt.Sprintf(`,"hold":%q`, hold) }, func(hold uint64, _ string) *api.Request { return releasing(hold) })
}

func renewByID(w *world) {
	byID(w, "renew", func(_, _ string) string { return "" }, func(uint64, string) *api.Request { return renewal() })
}

func acquireByID(w *world) {
	byID(w, "acquire", func(_, name string) string { return fmt.Sprintf(`,"name":%q`, name) }, func(_ uint64, name string) *api.Request { return acquiring(name) })
}

func closeByID(w *world) {
	byID(w, "close", func(_, _ string) string { return "" }, func(uint64, string) *api.Request { return closing() })
}

// byID tries to act in the session of a victim with the id that lists show, in every form and through
// every interface.
func byID(w *world, op string, fields func(hold, name string) string, request func(hold uint64, name string) *api.Request) {
	v := w.victim()
	listed := w.listed(v.name)
	shown, _ := listed["session_id"].(string)
	raw, err := hex.DecodeString(strings.TrimPrefix(shown, "s-"))
	if err != nil || len(raw) != 16 || !strings.HasPrefix(shown, "s-") {
		w.Fatalf("the list shows the session %q", shown)
	}
	hold, other := v.before.GetSequence(), w.prefix+"other"
	for id := range w.cluster.Servers() {
		for _, session := range []string{shown, hexOf(raw), strings.ToUpper(hexOf(raw))} {
			answer := w.object(id+1, nil, "POST", "/v1/"+op, fmt.Sprintf(`{"session":%q%s}`, session, fields(fmt.Sprint(hold), other)))
			if code := answer["code"]; code != "INVALID" && code != "SESSION_GONE" {
				w.Errorf("%s over HTTP with %q: %v", op, session, answer)
			}
			v.same(op + " over HTTP with " + session)
		}
		client, _ := w.dial(id+1, nil)
		for _, session := range [][]byte{raw, []byte(shown), []byte(hexOf(raw))} {
			reply := w.do(client, session, request(hold, other))
			if code := reply.GetCode(); code != api.Code_CODE_INVALID && code != api.Code_CODE_SESSION_GONE {
				w.Errorf("%s over gRPC with %q: %v", op, session, reply)
			}
			v.same(fmt.Sprintf("%s over gRPC with %q", op, session))
		}
	}
	s := w.attach(nil, raw)
	s.expect(s.send(request(hold, other)), api.Code_CODE_SESSION_GONE)
	v.same(op + " over a stream")
}

// stolen returns a victim with a stream. The attacker has its secret.
func (w *world) stolen(secrecy *tls.Config) (*stream, *api.Holder) {
	w.Helper()
	s := w.attach(secrecy, newSecret()).open(time.Minute)
	s.expect(s.send(acquiring(w.prefix+"lock")), api.Code_CODE_OK)
	return s, w.holder(secrecy, w.prefix+"lock")
}

// undisturbed requires that the victim still holds, can renew, and received no message.
func (s *stream) undisturbed(secrecy *tls.Config, before *api.Holder, after string) {
	s.Helper()
	if renewed := s.expect(s.send(renewal()), api.Code_CODE_OK); len(renewed.GetRevoked()) > 0 || !bytes.Equal(renewed.GetId(), s.id) {
		s.Fatalf("after %s the victim's renewal is answered with %v", after, renewed)
	}
	for sequence, replies := range s.early {
		if len(replies) > 0 {
			s.Fatalf("after %s the victim was told %v about request %d", after, replies, sequence)
		}
	}
	s.unchanged(secrecy, s.prefix+"lock", before, after)
}

func stolenSecret(w *world) {
	owner, thief := w.certificate("owner"), w.certificate("thief")
	v, before := w.stolen(owner)
	client, _ := w.dial(1, thief)
	hold, other := before.GetSequence(), w.prefix+"other"
	for _, r := range []*api.Request{releasing(hold), renewal(), acquiring(other), closing()} {
		if reply := w.do(client, v.secret, r); reply.GetCode() != api.Code_CODE_SESSION_GONE {
			w.Errorf("%v is answered with %v", r, reply)
		}
		v.undisturbed(owner, before, fmt.Sprint(r))
	}
	for op, fields := range map[string]string{
		"release": fmt.Sprintf(`,"hold":"%d"`, hold), "renew": "", "acquire": fmt.Sprintf(`,"name":%q`, other), "close": "",
	} {
		if answer := w.object(1, thief, "POST", "/v1/"+op, fmt.Sprintf(`{"session":"%x"%s}`, v.secret, fields)); answer["code"] != "SESSION_GONE" {
			w.Errorf("%s over HTTP: %v", op, answer)
		}
		v.undisturbed(owner, before, op)
	}
	// A certificate authenticates its owner. The names of programs and hosts do not.
	if page, err := client.Sessions(w.within(), &api.SessionsRequest{}); err != nil || len(page.GetSessions()) != 1 || page.GetSessions()[0].GetOwner() != "cert:owner" {
		w.Errorf("got %v, %v; want one session, of cert:owner", page, err)
	}
	v.expect(v.send(closing()), api.Code_CODE_OK)
}

func stolenBeforehand(w *world) {
	secret := newSecret()
	first, second := w.attach(w.certificate("thief"), secret), w.attach(w.certificate("owner"), secret)
	// The thief sends first, and neither of the two waits for an answer.
	first.send(opening(time.Minute), acquiring(w.prefix+"thief's"))
	second.send(opening(time.Minute), acquiring(w.prefix+"lock"))
	first.id, second.id = first.expect(1, api.Code_CODE_OK).GetId(), second.expect(1, api.Code_CODE_OK).GetId()
	if bytes.Equal(first.id, second.id) {
		w.Fatalf("thief and owner share the session %x", first.id)
	}
	first.expect(2, api.Code_CODE_OK)
	second.expect(2, api.Code_CODE_OK)
	owner := w.certificate("owner")
	before := w.holder(owner, w.prefix+"lock")
	if before.GetOwner() != "cert:owner" || !bytes.Equal(before.GetSession(), second.id) {
		w.Fatalf("the owner's lock is held by %v", before)
	}
	for _, r := range []*api.Request{releasing(2), renewal(), closing()} { // the hold of the owner also has the number 2
		first.reply(first.send(r))
		second.undisturbed(owner, before, fmt.Sprint(r))
	}
	second.expect(second.send(closing()), api.Code_CODE_OK)
}
