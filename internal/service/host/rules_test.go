package host

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/settings"
)

// allow makes the rules allow only these clients to hold locks.
func (l *lonely) allow(who ...string) {
	l.t.Helper()
	edits := []access.Edit{
		{Kind: access.PutRole, Role: access.Role{Name: "holder", Rules: []access.Rule{{Verbs: access.Of(access.Hold), Class: access.Any, Name: "a/"}}}},
		{Kind: access.SetMode, Mode: access.Closed},
	}
	for _, name := range who {
		edits = append(edits, access.Edit{Kind: access.PutBinding, Binding: access.Binding{Who: name, Roles: []string{"holder"}}})
	}
	rules, err := new(access.State).Apply(&access.Change{Force: true, Edits: edits})
	if err != nil {
		l.t.Fatal(err)
	}
	l.Rules(l.now, rules)
}

// A change of the rules ends the waits that it does not allow, and no hold. Requests are decided by it.
func TestRules(t *testing.T) {
	l := alone(t, Config{}, view.Use{Algorithm: "central"})
	for session, owner := range []string{"cert:a", "cert:b"} {
		id := registry.SessionID{byte(5 + session)}
		l.Submit(0, uint64(1+session), []registry.Command{
			{Op: registry.OpOpen, Session: id, Sequence: 1, TTL: 10e9, Owner: owner},
			{Op: registry.OpAcquire, Session: id, Sequence: 2, Name: "a/held"},
		})
	}
	l.Output()
	if held, wanted := l.home.reg.Demand("a/held"); !held || !wanted {
		t.Fatalf("held %t, wanted %t", held, wanted)
	}
	l.allow("cert:c")
	if o := l.Output(); code(o, 2, 2) != registry.Denied || code(o, 1, 2) != 0 {
		t.Errorf("the holder and the waiter are told %+v", o.Replies)
	}
	l.Submit(0, 1, []registry.Command{{Op: registry.OpAcquire, Session: registry.SessionID{5}, Sequence: 3, Name: "a/other"}})
	if got := code(l.Output(), 1, 3); got != registry.Denied {
		t.Errorf("a request is answered %v", got)
	}
	l.allow("cert:a")
	l.Submit(0, 1, []registry.Command{{Op: registry.OpAcquire, Session: registry.SessionID{5}, Sequence: 4, Name: "a/other"}})
	l.Output()
	if held, _ := l.home.reg.Demand("a/other"); !held {
		t.Error("a request that is allowed again is not granted")
	}
}

// P2: while a home is frozen, new rules end no wait. They do when nobody takes it over.
func TestRulesWhileHandedOver(t *testing.T) {
	l := pair(t, view.Use{Algorithm: "raymond", Options: "coordinator=first"})
	l.Lane(2, true)
	l.frames(0, frame{kind: frameResumed})
	for session, owner := range []string{"cert:a", "cert:b"} {
		id := registry.SessionID{byte(5 + session)}
		l.Submit(0, uint64(1+session), []registry.Command{
			{Op: registry.OpOpen, Session: id, Sequence: 1, TTL: 10e9, Owner: owner},
			{Op: registry.OpAcquire, Session: id, Sequence: 2, Name: "a/0"},
		})
	}
	l.Leave(l.now)
	l.Output()
	if !l.home.frozen {
		t.Fatal("it does not hand over")
	}
	if l.allow("cert:a"); code(l.Output(), 2, 2) != 0 {
		t.Error("a wait that another member may have taken over is ended")
	}
	l.frames(1, frame{kind: frameRefused})
	if got := code(l.Output(), 2, 2); got != registry.Denied {
		t.Errorf("the waiter is told %v", got)
	}
}

// With names = nfc a home grants no new name in another form, also not near. What is held is released, and a
// request that is repeated finds its hold.
func TestNamesOfAHome(t *testing.T) {
	const composed, decomposed = "a/caf\u00e9", "a/cafe\u0301"
	l := alone(t, Config{}, central)
	l.Output()
	owner := &near.Owner{Session: [16]byte{7}}
	before := l.mustLock(owner, decomposed+"/near")
	if got := l.submit(registry.Command{Op: registry.OpAcquire, Name: decomposed}); got.Code != registry.OK {
		t.Fatalf("%+v", got)
	}
	hold := l.number
	var none *settings.State
	l.Settings(l.now, none.With(settings.Names, settings.NFC, 7))
	if got := l.SettingsRevision(); got != 7 {
		t.Errorf("the home goes by revision %d", got)
	}
	if got := l.submit(registry.Command{Op: registry.OpAcquire, Name: decomposed + "/new"}); got.Code != registry.Invalid || !strings.Contains(got.Message, `"a/cafe\u0301/new": is not in the Unicode form NFC`) {
		t.Errorf("a name in another form: %+v", got)
	}
	if l.lock(owner, decomposed+"/new") != nil {
		t.Error("a name in another form is granted near")
	}
	l.mustLock(owner, composed+"/near")
	if got := l.submit(registry.Command{Op: registry.OpAcquire, Name: composed}); got.Code != registry.OK {
		t.Errorf("a composed name: %+v", got)
	}
	if got := l.submit(registry.Command{Op: registry.OpRelease, Hold: hold}); got.Code != registry.OK {
		t.Errorf("what is held is not released: %+v", got)
	}
	if got := l.Unlock(l.now, before); got != near.Held {
		t.Errorf("what was held near was %d", got)
	}
}
