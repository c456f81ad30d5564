// Package turns checks in which order a leader writes the requests of its clients to its log: in a
// flood, requests of other sessions and principals must not wait for it.
package turns

import (
	"cmp"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

const (
	// BatchBytes is the maximum size of a log entry. An entry then has up to sixteen requests, so
	// that a flood has to wait.
	BatchBytes = 64 << 10
	// fairTurns limits how many requests that take room one session may get into the log before a
	// request of another session that waits alone. It covers the turn of the session, a turn that
	// has begun, and an entry that was chosen and not proposed. For a request that makes room, it
	// limits the requests of all sessions together, and those that others with requests like it leave
	// room for.
	fairTurns = 48
)

// Facts are what is known of a server and of its clients.
type Facts struct {
	Server uint64
	// Leads returns the term in which the server leads, or 0.
	Leads func() uint64
	// Owner returns the principal that opened a session.
	Owner func(id registry.SessionID) string
	// HasHold reports whether a session was informed about the grant of a request.
	HasHold func(id registry.SessionID, sequence uint64) bool
	// Violate reports a request that waits too long.
	Violate func(rule, format string, args ...any)
}

// Turns has the requests that wait to get into the log of a leader.
type Turns struct {
	Facts
	term uint64
	// came has the lanes of all requests that arrived, and whether they still wait.
	came  map[numbered]lane
	waits map[numbered]bool
	count map[lane]int // number of waiting requests
	// asked has the acquires that arrived, first or again, and were not answered since then. A
	// release of one of them waits behind it.
	asked map[numbered]bool
	// opens has the Opens that were not answered, by session.
	opens map[registry.SessionID]opening
	// behind has the requests that arrived while an Open of their session, or the acquire that they
	// release, was not answered. They stay in the lane of that one, also if they arrive again after
	// its answer.
	behind map[numbered]bool
	// alone has the requests that are the only waiting ones of their lane.
	alone map[numbered]*turn
	// owner has the principals of the requests that take room. shares has the waiting requests of
	// each principal.
	owner  map[numbered]string
	shares shares
}

// numbered identifies a request.
type numbered struct {
	session  registry.SessionID
	sequence uint64
}

// lane identifies the waiting requests of a session that make room, or those that take room.
type lane struct {
	session   registry.SessionID
	makesRoom bool
}

// opening is an Open, and the principal that it is for.
type opening struct {
	sequence uint64
	owner    string
}

// turn is a request that waits alone.
type turn struct {
	passed map[registry.SessionID]int // requests that take room and went first, by session
	all    int
	// others counts the requests of other kinds that went first, such as the renewals of hundreds of
	// sessions. They have three quarters of each entry.
	others int
}

func newTurns(facts Facts, term uint64) Turns {
	return Turns{
		Facts: facts, term: term, came: make(map[numbered]lane), waits: make(map[numbered]bool), asked: make(map[numbered]bool), behind: make(map[numbered]bool),
		opens: make(map[registry.SessionID]opening),
		count: make(map[lane]int), alone: make(map[numbered]*turn),
		owner: make(map[numbered]string), shares: newShares(),
	}
}

// Arrive records requests that a leader receives.
func (t *Turns) Arrive(commands []registry.Command) {
	term := t.Leads()
	if term == 0 {
		return
	}
	if t.term != term {
		*t = newTurns(t.Facts, term)
	}
	for _, c := range commands {
		at := numbered{c.Session, c.Sequence}
		if _, opens := t.opens[c.Session]; opens || c.Op == registry.OpRelease && t.asked[numbered{c.Session, c.Hold}] {
			t.behind[at] = true
		}
		if c.Op == registry.OpOpen {
			t.opens[c.Session] = opening{c.Sequence, c.Owner}
		}
		makesRoom := !t.behind[at] && (c.Op == registry.OpCancel ||
			c.Op == registry.OpRelease && t.HasHold(c.Session, c.Hold))
		of := lane{c.Session, makesRoom}
		if c.Op == registry.OpAcquire {
			t.asked[at] = true
		}
		if t.waits[at] || c.Op != registry.OpAcquire && !makesRoom {
			continue
		}
		// A request whose answer was lost waits again, and others of its lane behind it.
		_, again := t.came[at]
		t.came[at], t.waits[at] = of, true
		if !makesRoom {
			t.owner[at] = t.Owner(c.Session)
			t.shares.wait(t.owner[at], 1)
		}
		if t.count[of]++; t.count[of] == 1 && !again {
			t.alone[at] = &turn{passed: make(map[registry.SessionID]int)}
		}
	}
}

// Enter checks what a leader writes to the log.
func (t *Turns) Enter(save *agreement.Save) {
	if len(t.alone) == 0 && len(t.shares.waiting) < 2 || t.term == 0 || t.term != t.Leads() {
		return
	}
	for _, e := range save.Entries {
		batch, err := registry.DecodeBatch(e.GetData())
		if err != nil || e.GetTerm() != t.term {
			continue // an entry of raft itself, or of an earlier leader
		}
		for i := range batch.Commands {
			t.goes(&batch.Commands[i])
		}
	}
}

// goes records a request that gets into the log.
func (t *Turns) goes(c *registry.Command) {
	at := numbered{c.Session, c.Sequence}
	who, came := t.owner[at]
	if !came && (c.Op == registry.OpOpen || c.Op == registry.OpUpdate || t.behind[at]) { // it uses its principal's turn, too
		who, came = cmp.Or(c.Owner, t.opens[c.Session].owner, t.Owner(c.Session)), true
	}
	if came { // also if it was answered before, and came again
		if behind := t.shares.serve(who); behind != "" {
			t.Violate("shares", "at server %d, %s got over %d requests that take room into the log more than %s, and both have a backlog", t.Server, who, fairTurns, behind)
		}
	}
	t.remove(at)
	delete(t.behind, at)
	if c.Op != registry.OpAcquire {
		for _, x := range t.alone {
			x.others++
		}
		return
	}
	for at, x := range t.alone {
		x.all++
		x.passed[c.Session]++
		makesRoom := t.came[at].makesRoom
		if makesRoom && x.all > fairTurns+x.others/3 || !makesRoom && at.session != c.Session && x.passed[c.Session] > fairTurns {
			t.Violate("turns", "request %d of session %v, which makes room: %t, waits for its turn at server %d; %d that take room went first", at.sequence, at.session, makesRoom, t.Server, x.all)
		}
	}
}

func (t *Turns) remove(at numbered) {
	if t.waits[at] {
		t.waits[at] = false
		t.count[t.came[at]]--
		if !t.came[at].makesRoom {
			t.shares.wait(t.owner[at], -1)
		}
		delete(t.alone, at)
	}
}

// Answer removes the requests that are answered.
func (t *Turns) Answer(replies []replica.Reply) {
	for _, r := range replies {
		at := numbered{r.Session, r.Sequence}
		t.remove(at)
		delete(t.asked, at)
		delete(t.behind, at)
		if o, opens := t.opens[at.session]; opens && o.sequence == at.sequence {
			delete(t.opens, at.session)
		}
	}
}
