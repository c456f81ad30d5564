package vopr

import (
	"github.com/conclave-io/conclave/service/agreement"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

const (
	// batchBytes bounds a log entry, to sixteen requests, so that a flood waits.
	batchBytes = 64 << 10
	// fairTurns is how many requests of one session to take room may get into the log
	// before one of another that waits alone: its turn, one that has begun, and an entry
	// that was drawn and not proposed. Before a request that makes room, it is how many
	// of all sessions may.
	fairTurns = 48
)

// turns is what the judge knows of the requests that wait, at a leader, to get into the
// log: in a flood, those of others must not wait for it.
type turns struct {
	term    uint64
	waits   map[numbered]bool // of all that came: whether it still does
	waiting map[numbered]*turn
	alone   map[registry.SessionID]int // how many of a session wait
}

// numbered finds a request.
type numbered struct {
	session  registry.SessionID
	sequence uint64
}

// turn is a request that waits alone: no other of its session waits with it.
type turn struct {
	makesRoom bool
	passed    map[registry.SessionID]int // requests to take room that went first, by session
	all       int
}

// arrive notes requests that a leader is given.
func (t *turns) arrive(s *server, commands []registry.Command) {
	if !s.replica.Leading() {
		return
	}
	if t.term != s.replica.Term() {
		*t = turns{term: s.replica.Term(), waits: make(map[numbered]bool), waiting: make(map[numbered]*turn), alone: make(map[registry.SessionID]int)}
	}
	for _, c := range commands {
		at := numbered{c.Session, c.Sequence}
		release := c.Op == registry.OpRelease && s.hasHold(c.Session, c.Hold)
		if _, again := t.waits[at]; again || c.Op != registry.OpAcquire && !release {
			continue
		}
		t.waits[at] = true
		t.alone[c.Session]++
		if release || t.alone[c.Session] == 1 {
			t.waiting[at] = &turn{makesRoom: release, passed: make(map[registry.SessionID]int)}
		}
	}
}

// hasHold reports whether a session has been granted something by a request.
func (s *server) hasHold(id registry.SessionID, sequence uint64) bool {
	for _, c := range s.w.clients {
		for _, x := range c.sessions {
			if p := x.places[sequence]; x.id == id && p != nil {
				return p.fence != 0
			}
		}
	}
	return false
}

// enter looks at what a leader puts into the log.
func (t *turns) enter(s *server, save *agreement.Save) {
	if len(t.waiting) == 0 || !s.replica.Leading() || t.term != s.replica.Term() {
		return
	}
	for _, e := range save.Entries {
		batch, err := registry.DecodeBatch(e.GetData())
		if err != nil || e.GetTerm() != t.term {
			continue // raft's own, or of an earlier leader
		}
		for i := range batch.Commands {
			t.goes(s, &batch.Commands[i])
		}
	}
}

// goes is a request that gets into the log.
func (t *turns) goes(s *server, c *registry.Command) {
	at := numbered{c.Session, c.Sequence}
	t.remove(at)
	if c.Op != registry.OpAcquire {
		return
	}
	for other, x := range t.waiting {
		x.all++
		x.passed[c.Session]++
		if x.makesRoom && x.all > fairTurns || other.session != c.Session && x.passed[c.Session] > fairTurns {
			s.w.violate("turns", "a request waits for its turn at server %d; of others %d went first, %d of them of session %v", s.id, x.all, x.passed[c.Session], c.Session)
		}
	}
}

func (t *turns) remove(at numbered) {
	if t.waits[at] {
		t.waits[at] = false
		t.alone[at.session]--
		delete(t.waiting, at)
	}
}

// answer takes off those that are answered.
func (t *turns) answer(replies []replica.Reply) {
	for _, r := range replies {
		t.remove(numbered{r.Session, r.Sequence})
	}
}
