// Package trace checks that what servers and clients decide about sessions conforms to the model of
// internal/test/leasemodel.
package trace

import (
	"encoding/binary"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/leasemodel"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/ledger"
)

// Trace passes the decisions of servers and clients to the model of the sessions. It observes them
// from outside: what servers write to their logs, send, answer and have applied, and what clients
// send and rely on. A nil Trace checks nothing.
type Trace struct {
	events    *events.Run
	run       *leasemodel.Run
	hosts     map[uint64]*traced
	sessions  map[registry.SessionID]*leasemodel.Session
	inOrder   []*leasemodel.Session
	ids       []registry.SessionID // the ids in inOrder
	committed uint64
	// standstill is the gap between two ticks from which on a server concludes that it was paused.
	// Then its clock of leases did not advance.
	standstill int64
}

// traced is a server whose decisions are checked.
type traced struct {
	life    int
	blank   bool
	voters  [2][]uint64 // the voters that it counts, now and before the newest change
	led     uint64      // the term in which it leads, or 0
	applied uint64
	ticked  int64 // its clock reading at the last tick
	stood   int64 // how long it was paused while it ran
}

// Server is what is observed of a server.
type Server struct {
	ID      uint64
	Life    int   // of its process
	Time    int64 // the latest clock reading that the replica received
	Replica *replica.Replica
	Log     *ledger.Ledger
}

// New returns the trace of a run. tick is the time between two ticks of a server.
func New(run *events.Run, tick int64) *Trace {
	cfg := replica.Config{Tick: tick}.WithDefaults()
	return &Trace{
		events: run, run: leasemodel.NewRun(), standstill: int64(cfg.ElectionTicks) * cfg.Tick, hosts: make(map[uint64]*traced),
		sessions: make(map[registry.SessionID]*leasemodel.Session),
	}
}

// require records a decision that the model does not allow.
func (t *Trace) require(err error) {
	if err != nil {
		t.events.Violate(events.RuleTrace, "%v", err)
	}
}

// Compared returns how many decisions were compared with the model.
func (t *Trace) Compared() (c leasemodel.Compared) {
	if t != nil {
		c = t.run.Compared
	}
	return c
}

// clock returns the reading of a server's clock of leases.
func (t *Trace) clock(s Server) int64 { return s.Time - t.hosts[s.ID].stood }

// Ticks is called after a server has ticked.
func (t *Trace) Ticks(s Server) {
	if t == nil {
		return
	}
	h := t.host(s)
	if gap := s.Time - h.ticked; h.ticked != 0 && gap > t.standstill {
		h.stood += gap
	}
	h.ticked = s.Time
}

// host returns the record of a server since the start of its process.
func (t *Trace) host(s Server) *traced {
	h := t.hosts[s.ID]
	if h != nil && h.life == s.Life {
		return h
	}
	h = &traced{life: s.Life, blank: s.Replica.Blank(), applied: s.Replica.Applied()}
	t.hosts[s.ID] = h
	t.run.Boot(s.ID, h.blank)
	h.count(s)
	return h
}

// count records the voters that a server counts.
func (h *traced) count(s Server) {
	voters := s.Replica.Status().Voters
	if h.voters[0] != nil && slices.Equal(voters, h.voters[0]) {
		return // the members changed in another way; the change before is still the newest
	}
	h.voters[0], h.voters[1] = voters, h.voters[0]
}

// Submitted is called after a server has accepted requests.
func (t *Trace) Submitted(s Server, commands []registry.Command) {
	if t == nil {
		return
	}
	t.host(s)
	for i := range commands {
		c := &commands[i]
		if x := t.sessions[c.Session]; x != nil && (c.Op == registry.OpOpen || c.Op == registry.OpRenew) {
			view, _ := s.Replica.Registry().Session(c.Session)
			op := leasemodel.Renews
			if c.Op == registry.OpOpen {
				op = leasemodel.Opens
			}
			t.require(t.run.Arrive(s.ID, x, op, c.Sequence, t.clock(s), s.Replica.Remaining(c.Session) >= view.TTL))
		}
	}
}

// Output is called with an output that a server is about to carry out.
func (t *Trace) Output(s Server, out *replica.Output) {
	if t == nil {
		return
	}
	h := t.host(s)
	if out.Members || h.voters[0] == nil {
		h.count(s)
	}
	if h.blank && !s.Replica.Blank() {
		h.blank = false
		var counted []uint64
		if l := t.hosts[s.Replica.Leader()]; l != nil {
			counted = l.voters[0]
		}
		t.require(t.run.Fill(s.ID, s.Replica.Leader(), counted))
	}
	t.proposals(s, h, out)
	term := s.Replica.Term()
	if out.Deposed {
		h.led = 0
		t.run.Depose(s.ID)
	}
	if s.Replica.Leading() && h.led != term {
		h.led = term
		h.count(s)
		t.require(t.run.Elect(s.ID, term, h.voters[:]...))
		t.proposals(s, h, out)
	}
	for _, m := range out.Send {
		t.sends(s, m)
	}
	t.applies(s, h)
	// The state no longer contains a hold that came and ended since the last output.
	asked := map[registry.SessionID]bool{}
	for i := range out.Replies {
		r := &out.Replies[i]
		if r.Result.Code == registry.Revoked && r.Result.Fence != 0 {
			asked[r.Session] = true
		}
		t.replies(s, h, r, asked[r.Session] || len(s.Replica.Registry().Asked(r.Session)) > 0)
	}
	t.compare(s)
}

// proposals reports what a leader has written to its log.
func (t *Trace) proposals(s Server, h *traced, out *replica.Output) {
	for _, save := range out.Saves {
		for _, e := range save.Entries {
			if h.led != 0 && e.GetTerm() == h.led {
				t.require(t.run.Propose(s.ID, h.led, e.GetIndex(), ledger.Mark(e), t.clock(s), t.entries(e)))
			}
		}
	}
}

// entries returns the effects of an entry on the sessions that are checked.
func (t *Trace) entries(e *raftpb.Entry) (all []leasemodel.Entry) {
	var batch registry.Batch
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 || batch.Decode(e.GetData()) != nil {
		return nil
	}
	for i := range batch.Commands {
		c := &batch.Commands[i]
		switch c.Op {
		case registry.OpOpen:
			all = t.add(all, c.Session, leasemodel.Entry{Op: leasemodel.Opens, Number: c.Sequence})
		case registry.OpRenew:
			all = t.add(all, c.Session, leasemodel.Entry{Op: leasemodel.Renews, Number: c.Sequence})
		case registry.OpClose, registry.OpEnd:
			all = t.add(all, c.Session, leasemodel.Entry{Op: leasemodel.Closes})
		case registry.OpExpire:
			for _, l := range c.Verdicts {
				all = t.add(all, l.Session, leasemodel.Entry{Op: leasemodel.Expires, Term: c.Term, Renewals: l.Renewals})
			}
		case registry.OpSilence:
			for _, l := range c.Verdicts {
				all = t.add(all, l.Session, leasemodel.Entry{Op: leasemodel.Silences, Term: c.Term, Renewals: l.Renewals, Value: l.Remaining})
			}
		case registry.OpDrop:
			for _, id := range c.Claims {
				all = t.add(all, id.Session, leasemodel.Entry{Op: leasemodel.Drops, Term: c.Term, Number: id.Sequence})
			}
		}
	}
	return all
}

func (t *Trace) add(all []leasemodel.Entry, id registry.SessionID, e leasemodel.Entry) []leasemodel.Entry {
	if e.Session = t.sessions[id]; e.Session == nil {
		return all
	}
	return append(all, e)
}

// sends reports the votes and answers of a server, and the rounds that it begins.
func (t *Trace) sends(s Server, m *raftpb.Message) {
	counted := func() bool {
		l := t.hosts[m.GetTo()]
		return l != nil && slices.Contains(l.voters[0], s.ID)
	}
	switch m.GetType() {
	case raftpb.MsgVoteResp, raftpb.MsgPreVoteResp:
		if m.GetReject() {
			return
		}
		candidate := m.GetTo()
		if m.GetType() == raftpb.MsgPreVoteResp {
			candidate = 0
		}
		t.require(t.run.Vote(s.ID, candidate, m.GetTerm()))
	case raftpb.MsgHeartbeat:
		if round := roundOf(m); round != 0 {
			t.run.Begin(s.ID, m.GetTerm(), round)
		}
	case raftpb.MsgHeartbeatResp:
		t.require(t.run.Answer(s.ID, m.GetTo(), m.GetTerm(), roundOf(m), counted()))
	case raftpb.MsgAppResp:
		if !m.GetReject() {
			t.require(t.run.Store(s.ID, m.GetTo(), m.GetTerm(), m.GetIndex(), counted()))
		}
	}
}

// roundOf returns raft's number of the round of a heartbeat or its answer. It returns 0 for other
// messages. A leader counts its rounds.
func roundOf(m *raftpb.Message) uint64 {
	context := m.GetContext()
	if len(context) != 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(context)
}

// applies reports the entries that a server was the first to apply.
func (t *Trace) applies(s Server, h *traced) {
	for index := h.applied + 1; index <= s.Replica.Applied(); index++ {
		if mark, known := s.Log.At(index); known && index > t.committed {
			t.committed = index
			leader := s.Replica.Leader()
			configs := h.voters
			if l := t.hosts[leader]; l != nil {
				configs = l.voters
			}
			t.require(t.run.Commit(s.ID, leader, index, mark, configs[:]...))
		}
		t.run.Apply(s.ID, index, t.clock(s))
	}
	h.applied = s.Replica.Applied()
}

// replies reports a server's answers to renewals, and answers about ended sessions. asked means
// that the session was asked to release a hold.
func (t *Trace) replies(s Server, h *traced, r *replica.Reply, asked bool) {
	x := t.sessions[r.Session]
	switch {
	case x == nil:
	case r.Result.Code == registry.SessionGone:
		t.require(t.run.Gone(s.ID, x))
	case r.Result.Code == registry.OK && r.Result.Remaining > 0:
		t.require(t.run.Reply(s.ID, x, r.Sequence, t.clock(s), len(r.Result.Revoked) > 0, asked, h.voters[:]...))
	}
}

// compare checks what a leader shows about all sessions.
func (t *Trace) compare(s Server) {
	h := t.hosts[s.ID]
	if h == nil || h.led == 0 || !s.Replica.Leading() {
		return
	}
	reading, state := t.clock(s), s.Replica.Registry()
	for i, x := range t.inOrder {
		if x.Over() {
			continue
		}
		id := t.ids[i]
		view, isOpen := state.Session(id)
		v := leasemodel.View{
			Open: isOpen, Silent: view.Silent, Renewals: view.Renewals, Recorded: view.Remaining,
			Left: s.Replica.Remaining(id), Asked: state.Asked(id),
		}
		t.require(t.run.Compare(s.ID, x, reading, &v, h.voters[:]...))
	}
}

// Asks is called when a client transmits requests. derive returns the session of a secret, and now
// the reading of its clock.
func (t *Trace) Asks(frame *api.ClientFrame, derive func(secret []byte) registry.SessionID, now func() int64) {
	if t == nil {
		return
	}
	for _, req := range frame.GetRequests() {
		id := derive(req.GetSession())
		x := t.sessions[id]
		switch op := req.GetOp().(type) {
		case *api.Request_Open:
			if x == nil {
				x = t.run.Open(op.Open.GetTtlNs(), line.Margin(op.Open.GetTtlNs()), now)
				t.sessions[id] = x
				t.inOrder, t.ids = append(t.inOrder, x), append(t.ids, id)
			}
			x.Send(req.GetSequence())
		case *api.Request_Renew:
			x.Send(req.GetSequence())
		case *api.Request_Close:
			x.Lose()
		}
	}
}

// Hears is called when a client receives replies.
func (t *Trace) Hears(frame *api.ServerFrame, derive func(secret []byte) registry.SessionID) {
	if t == nil {
		return
	}
	for _, rep := range frame.GetReplies() {
		x := t.sessions[derive(rep.GetSession())]
		switch code := registry.Code(rep.GetCode()); {
		case x == nil:
		case code == registry.SessionGone:
			x.Lose()
		case code == registry.OK && rep.GetRemainingNs() > 0:
			t.require(x.Receive(rep.GetSequence()))
		}
	}
}

// Believes is called when a client moves the deadline of a session, by its clock.
func (t *Trace) Believes(id registry.SessionID, until int64) {
	if t != nil {
		t.require(t.sessions[id].Believes(until))
	}
}

// Loses is called when a client gives up a session, or dies.
func (t *Trace) Loses(id registry.SessionID) {
	if t != nil {
		t.sessions[id].Lose()
	}
}
