package stream

import (
	"testing"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

func TestWays(t *testing.T) {
	for _, c := range []struct {
		what string
		a    Arrival
		want Way
	}{
		{"the leader serves", Arrival{Leads: true, Self: 1, Leader: 1}, Serve},
		{"the leader serves who asks for the leader", Arrival{Leads: true, Asked: true, Self: 1, Leader: 1}, Serve},
		{"the leader serves what was passed on", Arrival{Leads: true, Caller: Caller{Vouched: true}, Self: 1, Leader: 1}, Serve},
		{"a follower is not asked to pass it on", Arrival{Self: 1, Leader: 2}, Dismiss},
		{"a follower passes it on", Arrival{Asked: true, Self: 1, Leader: 2}, PassOn},
		{"one hop", Arrival{Asked: true, Caller: Caller{Vouched: true}, Self: 1, Leader: 2}, Dismiss},
		{"no leader", Arrival{Asked: true, Self: 1}, Dismiss},
		{"a leader that lost it meanwhile", Arrival{Asked: true, Self: 1, Leader: 1}, Dismiss},
		{"one more", Arrival{Asked: true, Self: 1, Leader: 2, Relayed: MaxRelayed - 1}, PassOn},
		{"one too many", Arrival{Asked: true, Self: 1, Leader: 2, Relayed: MaxRelayed}, Crowded},
	} {
		if got := c.a.Way(); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// over requires how a relay has ended.
func over(t *testing.T, what string, r *Relay, wantOver, wantTold bool, code api.Code) {
	t.Helper()
	farewell, told := r.Farewell()
	if r.Over() != wantOver || told != wantTold || farewell.GetCode() != code {
		t.Errorf("%s: over %t, told %t, farewell %v", what, r.Over(), told, farewell)
	}
}

var welcome = &api.ServerFrame{Welcome: &api.Welcome{Server: 2}}

func TestARelayEnds(t *testing.T) {
	names := NewSessions(Caller{})
	for _, c := range []struct {
		what string
		do   func(r *Relay)
		over bool
		told bool
		code api.Code
	}{
		{what: "not yet", do: func(r *Relay) { r.Look(100+WelcomeTimeout-1, 2) }},
		{what: "no welcome in time", do: func(r *Relay) { r.Look(100+WelcomeTimeout, 2) }, over: true},
		{what: "another leads before the welcome", do: func(r *Relay) { r.Look(101, 3) }, over: true},
		{what: "no welcome at all", do: func(r *Relay) { r.Down(names, new(api.ServerFrame)) }, over: true},
		{what: "closed before the welcome", do: func(r *Relay) { r.Closed() }, over: true},
		{what: "welcomed, and late", do: func(r *Relay) { r.Down(names, welcome); r.Look(100+2*WelcomeTimeout, 2) }},
		{what: "another leads", do: func(r *Relay) { r.Down(names, welcome); r.Look(101, 3) }, over: true},
		{what: "nobody leads", do: func(r *Relay) { r.Down(names, welcome); r.Look(101, 0) }, over: true},
		{what: "the way is broken", do: func(r *Relay) { r.Down(names, welcome); r.Broken() }, over: true},
		{what: "the leader has said farewell", do: func(r *Relay) { r.Down(names, welcome); r.Closed(); r.Broken() }, over: true, told: true},
		{what: "a mistake of the client", do: func(r *Relay) { r.Down(names, welcome); r.Mistake("not a frame"); r.Broken() }, over: true, code: api.Code_CODE_INVALID},
		{what: "a mistake too late", do: func(r *Relay) { r.Down(names, welcome); r.Broken(); r.Mistake("canceled") }, over: true},
	} {
		r := NewRelay(100, 2)
		c.do(&r)
		over(t, c.what, &r, c.over, c.told, c.code)
	}
}

func TestARelayWaitsForTheWelcome(t *testing.T) {
	r := NewRelay(100, 2)
	if r.Welcomed() || r.Due(150) != WelcomeTimeout-50 || r.Due(100+WelcomeTimeout) <= 0 {
		t.Errorf("welcomed %t, due in %d ns", r.Welcomed(), r.Due(150))
	}
	if frame := r.Down(NewSessions(Caller{}), welcome); frame != nil || !r.Welcomed() || r.Due(150) != 0 {
		t.Errorf("the client gets %v, welcomed %t", frame, r.Welcomed())
	}
}

// The leader sees only ids, the client sees only its secrets, and anything that is not a
// secret is not forwarded.
func TestARelayPassesIDsUpAndSecretsDown(t *testing.T) {
	names := NewSessions(Caller{Principal: "cert:batch"})
	id := registry.Derive("cert:batch", secret(1))
	passed, refused := Up(names, &api.ClientFrame{Requests: []*api.Request{opening([]byte("short"), 7), opening(secret(1), 8)}})
	if got := passed.GetRequests(); len(got) != 1 || string(got[0].GetSession()) != string(id[:]) || got[0].GetSequence() != 8 {
		t.Errorf("the leader gets %v", got)
	}
	if got := refused.GetReplies(); len(got) != 1 || got[0].GetSequence() != 7 || got[0].GetCode() != api.Code_CODE_INVALID {
		t.Errorf("refused are %v", got)
	}
	if passed, refused = Up(names, &api.ClientFrame{Requests: []*api.Request{opening(nil, 9)}}); passed != nil || len(refused.GetReplies()) != 1 {
		t.Errorf("got %v, %v", passed, refused)
	}
	// The leader takes the id as it is, and answers under it.
	leader := NewSessions(Caller{Principal: "cert:batch", Vouched: true})
	if got, problem := leader.ID(id[:]); got != id || problem != "" {
		t.Fatal(got, problem)
	}
	r := NewRelay(0, 2)
	r.Down(names, welcome)
	down := r.Down(names, &api.ServerFrame{Replies: []*api.Reply{{Session: leader.Secret(id), Sequence: 8}}})
	if got := down.GetReplies()[0].GetSession(); string(got) != string(secret(1)) {
		t.Errorf("the client gets %x", got)
	}
}
