package stream

import (
	"testing"

	"github.com/conclave-io/conclave/api"
)

// dismissal names the leader by a letter.
func dismissal(leader uint64) *api.Farewell {
	return &api.Farewell{Code: api.Code_CODE_NOT_LEADER, Leader: string(rune('a' + leader))}
}

func sight(leader uint64) Sight {
	return Sight{Self: 1, Leader: leader, Leads: leader == 1, Dismissal: dismissal}
}

func arriving(asked bool) Life { return Life{Heartbeat: 50, Election: 200, Asked: asked} }

// is requires the phase of a stream, and in how many ns it is looked at again.
func is(t *testing.T, l *Life, again int64, phase Phase, wantAgain int64) {
	t.Helper()
	if l.Phase() != phase || again != wantAgain {
		t.Errorf("phase %d, again in %d ns; want %d, %d", l.Phase(), again, phase, wantAgain)
	}
}

// A stream waits for two heartbeats until the leader is known, and as long again to name it in
// the farewell.
func TestAStreamWaitsForALeader(t *testing.T) {
	for looks := range 2*looksForLeader + 2 {
		l := arriving(false)
		for i := range looks {
			phase := Arriving
			if i >= looksForLeader {
				phase = Leaving
			}
			if i < 2*looksForLeader {
				is(t, &l, l.Look(0, sight(0)), phase, 10)
				continue
			}
			is(t, &l, l.Look(0, sight(0)), Gone, 0)
		}
		switch again := l.Look(0, sight(1)); {
		case looks <= looksForLeader:
			is(t, &l, again, Serving, 0)
		default:
			is(t, &l, again, Gone, 0)
		}
	}
	l := arriving(false)
	if l.Look(0, Sight{Stopping: true, Dismissal: dismissal}); l.Phase() != Gone || l.Farewell().GetLeader() != "a" {
		t.Errorf("a server that stops: phase %d, %v", l.Phase(), l.Farewell())
	}
}

func TestAStreamThatIsServedEnds(t *testing.T) {
	for what, c := range map[string]struct {
		farewell  *api.Farewell
		dismissed bool
		leader    uint64
		phase     Phase
		want      *api.Farewell
	}{
		"the client has closed it":    {phase: Gone},
		"a mistake of the client":     {farewell: &api.Farewell{Message: "?"}, dismissed: true, phase: Gone, want: &api.Farewell{Message: "?"}},
		"another server leads":        {dismissed: true, leader: 2, phase: Gone, want: dismissal(2)},
		"nobody leads, or is unknown": {dismissed: true, phase: Leaving},
	} {
		l := arriving(true)
		l.Look(0, sight(1))
		l.End(c.farewell, c.dismissed)
		if l.Look(0, sight(c.leader)); l.Phase() != c.phase || l.Farewell().String() != c.want.String() {
			t.Errorf("%s: phase %d, %v", what, l.Phase(), l.Farewell())
		}
	}
}

func TestAStreamIsPassedOn(t *testing.T) {
	names := NewSessions(Caller{})
	for what, c := range map[string]struct {
		do     func(l *Life)
		leader uint64
		phase  Phase
		again  int64
		want   *api.Farewell
	}{
		"not welcomed yet":   {leader: 2, phase: Passing, again: 200},
		"the leader is gone": {leader: 0, phase: Leaving, again: 10},
		"another leads":      {leader: 3, phase: Gone, want: dismissal(3)},
		"this server leads":  {leader: 1, phase: Gone, want: dismissal(1)},
		"the way is broken":  {do: func(l *Life) { l.Pass((*Relay).Broken) }, leader: 2, phase: Gone, want: dismissal(2)},
		"the leader has ended it": {do: func(l *Life) {
			l.Pass(func(r *Relay) { r.Down(names, welcome) })
			l.Pass((*Relay).Closed)
		}, leader: 2, phase: Gone},
		"a mistake of the client": {do: func(l *Life) { l.Pass(func(r *Relay) { r.Mistake("?") }) }, leader: 2, phase: Gone,
			want: &api.Farewell{Code: api.Code_CODE_INVALID, Message: "?"}},
	} {
		l := arriving(true)
		is(t, &l, l.Look(0, sight(2)), Passing, 200)
		if l.Leader() != 2 {
			t.Errorf("%s: it goes to server %d", what, l.Leader())
		}
		if c.do != nil {
			c.do(&l)
		}
		again := l.Look(0, sight(c.leader))
		if is(t, &l, again, c.phase, c.again); l.Farewell().String() != c.want.String() {
			t.Errorf("%s: %v", what, l.Farewell())
		}
	}
	l := arriving(true)
	if is(t, &l, l.Look(WelcomeTimeout-50, sight(2)), Passing, 200); l.Look(2*WelcomeTimeout-200, sight(2)) != 150 {
		t.Error("it is not looked at when the welcome is due")
	}
	crowded := sight(2)
	crowded.Relayed = MaxRelayed
	l = arriving(true)
	if l.Look(0, crowded); l.Phase() != Gone || l.Farewell().GetLeader() != "" || l.Farewell().GetMessage() == "" {
		t.Errorf("one too many: phase %d, %v", l.Phase(), l.Farewell())
	}
	l.Pass(func(*Relay) { t.Error("a stream that is gone has a relay") })
}
