package replica

import (
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// members changes the members of the cluster and its level, one step at a time. It knows what the
// servers said of themselves when last met. What it starts is in the log, so that another leader
// continues it.
type members struct {
	*self
	met    map[uint64]registry.Member // what each server said of itself when last met
	levels map[uint64]Levels          // and which levels it reads
	heard  map[uint64]int64           // when each last sent something
	idle   int                        // ticks since the members were last looked at

	// The following fields are the leader's.
	changing bool   // a step of a change is under way
	lowering bool   // and it lowers the level
	rising   uint32 // the level that all members can go to
	risesAt  int64  // when they go there
}

func newMembers(own *self) members {
	cfg := &own.cfg
	return members{
		self:   own,
		met:    map[uint64]registry.Member{cfg.ID: {ID: cfg.ID, UID: cfg.UID, PeerAddress: cfg.PeerAddress, ClientAddress: cfg.ClientAddress}},
		levels: make(map[uint64]Levels), heard: make(map[uint64]int64),
	}
}

// depose resets what only a leader knows.
func (r *members) depose() {
	r.changing, r.lowering = false, false
	r.rising = 0
}

// Kind is the kind of a change of the members.
type Kind uint8

// The kinds of change.
const (
	// Add reserves an id for a server that will join at Server.PeerAddress.
	Add Kind = 1 + iota
	// Join admits Server, as a learner first.
	Join
	// Promote makes a learner a voter.
	Promote
	// Remove removes a server for good.
	Remove
	// Lead makes a voter the leader.
	Lead
)

// Change is a change of the members that somebody asks for.
type Change struct {
	Kind Kind
	// Server is the new server (Add, Join): its UID, its addresses, and whether it should
	// stay a learner.
	Server registry.Member
	// ID is the affected server (Promote, Remove, Lead).
	ID uint64
	// Force removes a server even if the others will have no quorum, and does not wait until a
	// majority of them has stored that.
	Force bool
	// Origin is who asks for the change. It is zero if no rule has to allow it.
	Origin registry.Origin
}

// ChangeError is the reason why a change is refused.
type ChangeError struct {
	// Busy means that another change is under way: try again later.
	Busy bool
	// Code is Denied or Unauthenticated if the rules refuse the change, otherwise 0.
	Code registry.Code
	Text string
}

func (e *ChangeError) Error() string { return e.Text }

func refuse(format string, args ...any) error {
	return &ChangeError{Text: fmt.Sprintf(format, args...)}
}

// permitChange refuses a change that the present rules do not allow. The rules are checked again
// when its entry is applied.
func (r *members) permitChange(c *Change) error {
	if c.Kind != Join {
		return r.permit(c.Origin, access.Members)
	}
	var refusal registry.Result
	if r.reg.ForbidsMember(c.Origin, c.Server, &refusal) {
		return &ChangeError{Code: refusal.Code, Text: refusal.Message}
	}
	return nil
}

// permit refuses what the present rules do not allow. The rules are checked again when the entry
// of the act is applied.
func (r *members) permit(by registry.Origin, verb access.Verb) error {
	var refusal registry.Result
	if r.reg.Forbids(by, verb, &refusal) {
		return &ChangeError{Code: refusal.Code, Text: refusal.Message}
	}
	return nil
}

// RemovedError means that this server stops because it was removed from the cluster.
type RemovedError struct{ ID uint64 }

func (e *RemovedError) Error() string {
	return fmt.Sprintf("server %d was removed from the cluster; its data directory is kept, and of no more use to the cluster", e.ID)
}

// Change starts a change of the members, or finds that it is made: then done is true, and id is
// the id of the server. The host calls it again until then, or until it returns an error. Only
// committed state counts, so it does not matter which leaders are asked, how often, or which of
// them crash.
func (r *members) Change(now int64, c Change) (id uint64, done bool, err error) {
	r.now = max(r.now, now)
	if !r.ready {
		return 0, false, agreement.ErrNotLeader
	}
	if err := r.permitChange(&c); err != nil {
		return 0, false, err
	}
	if r.changing {
		return 0, false, nil // a step of some change is under way: wait for its end
	}
	status := r.core.Status()
	switch c.Kind {
	case Add:
		return r.reserve(&status, c.Server, c.Origin)
	case Join:
		return r.join(&status, c.Server, c.Origin)
	case Promote:
		return r.promoteMember(&status, c.ID, c.Origin)
	case Remove:
		return r.removeMember(&status, &c)
	case Lead:
		return r.leadMember(&status, c.ID)
	}
	return 0, false, refuse("change of members: kind %d: unknown", c.Kind)
}

// at finds the server with a peer address that was not removed, from its record or, before it
// is recorded, from its introduction.
func (r *members) at(address string) (registry.Member, bool) {
	for _, m := range r.reg.Members() {
		if m.Standing != registry.Removed && m.PeerAddress == address {
			return m, true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.met)) {
		if _, recorded := r.reg.Member(id); !recorded && r.met[id].PeerAddress == address {
			return r.met[id], true
		}
	}
	return registry.Member{}, false
}

// reserve reserves an id for a new server. That has no other effect, and may be done while
// something else is under way.
func (r *members) reserve(status *agreement.Status, s registry.Member, by registry.Origin) (uint64, bool, error) {
	known, taken := r.at(s.PeerAddress)
	switch {
	case taken && known.Reserved() && known.Standing == s.Standing:
		return known.ID, true, nil
	case taken && known.Reserved():
		s.ID = known.ID
	case taken:
		return 0, false, refuse("server %d is already a member at %s: give the new server an address of its own", known.ID, s.PeerAddress)
	default:
		s.ID = r.nextID(status)
	}
	s.UID = 0
	r.record(s, by)
	return 0, false, nil
}

// nextID returns an id that no server ever had.
func (r *members) nextID(status *agreement.Status) uint64 {
	last := uint64(0)
	for _, m := range r.reg.Members() {
		last = max(last, m.ID)
	}
	return max(last, slices.Max(append(status.Learners, status.Voters...))) + 1
}

// join gives a server its id. A server that asked before gets the same id again. A member that
// lost its data also gets its own id again, and is taken back as an emptied member.
func (r *members) join(status *agreement.Status, s registry.Member, by registry.Origin) (uint64, bool, error) {
	for _, m := range r.reg.Members() {
		switch {
		case m.UID != s.UID:
		case m.Standing == registry.Removed:
			return 0, false, refuse("the data directory belongs to server %d, which was removed from the cluster: join with an empty one", m.ID)
		default:
			return m.ID, true, nil
		}
	}
	known, taken := r.at(s.PeerAddress)
	switch {
	case taken && known.Reserved():
		s.ID, s.Standing = known.ID, max(s.Standing, known.Standing)
	case taken && r.live(known.ID):
		// It may be that server, back without data before it was missed.
		return 0, false, &ChangeError{Busy: true, Text: fmt.Sprintf(
			"server %d is a member at %s, and was up a moment ago: give another server an address of its own", known.ID, s.PeerAddress)}
	case taken && access.Source(by.Actor) == access.Joining:
		// A token is used up by the entry that takes a server in, and here is none.
		return 0, false, refuse("server %d is a member at %s already: a join token is for a server that is not", known.ID, s.PeerAddress)
	case taken:
		return known.ID, true, nil
	default:
		s.ID = r.nextID(status)
	}
	if err := r.underway(status, s.ID); err != nil {
		return 0, false, err
	}
	r.record(s, by)
	return 0, false, nil
}

// promoteMember gives a learner a vote. A server that is meant to vote gets its vote as soon
// as it has caught up, without this.
func (r *members) promoteMember(status *agreement.Status, id uint64, by registry.Origin) (uint64, bool, error) {
	m, recorded := r.reg.Member(id)
	switch {
	case slices.Contains(status.Voters, id) && m.Standing == registry.Voter:
		return id, status.Settled, nil
	case !recorded || m.Standing == registry.Removed:
		return 0, false, r.unknown(status, id)
	case m.Reserved() || !slices.Contains(status.Learners, id):
		return 0, false, refuse("server %d has not joined yet: start it, and wait until it has caught up", id)
	}
	if err := r.abreast(status, id); err != nil {
		return 0, false, err
	}
	if err := r.underway(status, id); err != nil {
		return 0, false, err
	}
	if m.Standing == registry.Learner {
		m.Standing = registry.Voter
		r.record(m, by)
	}
	return 0, false, nil
}

// leadMember hands leadership to a voter. Raft first sends the voter the entries that it lacks,
// and accepts no commands meanwhile, so a voter that is far behind is refused. A transfer that
// is not complete within an election timeout is abandoned and then tried again.
func (r *members) leadMember(status *agreement.Status, id uint64) (uint64, bool, error) {
	m, recorded := r.reg.Member(id)
	voter := slices.Contains(status.Voters, id)
	switch {
	case id == r.cfg.ID:
		return id, true, nil
	case m.Standing == registry.Removed || !recorded && !voter:
		return 0, false, r.unknown(status, id)
	case !voter:
		return 0, false, refuse("server %d has no vote: promote it first", id)
	}
	if err := r.abreast(status, id); err != nil {
		return 0, false, err
	}
	if status.Transferee != id {
		return 0, false, r.core.TransferLeader(id)
	}
	return 0, false, nil
}

// abreast refuses a server that is not connected, or is far behind.
func (r *members) abreast(status *agreement.Status, id uint64) error {
	switch {
	case !r.live(id):
		return refuse("server %d is not up: start it first", id)
	case !r.caughtUp(status, id):
		return refuse("server %d lacks %d entries of the log: wait until it has caught up", id, behind(status, id))
	}
	return nil
}

// removeMember removes a server for good.
func (r *members) removeMember(status *agreement.Status, c *Change) (uint64, bool, error) {
	id := c.ID
	m, recorded := r.reg.Member(id)
	voter := slices.Contains(status.Voters, id)
	member := voter || slices.Contains(status.Learners, id)
	switch {
	case !recorded && !member:
		return 0, false, r.unknown(status, id)
	case m.Standing == registry.Removed:
		return id, !member && (status.Settled || c.Force), nil
	}
	if err := r.underway(status, id); err != nil && !(recorded && m.Reserved()) {
		return 0, false, err
	}
	if voter {
		if err := r.spare(status, id, c.Force); err != nil {
			return 0, false, err
		}
	}
	if !recorded {
		m = r.met[id]
	}
	m.ID, m.Standing = id, registry.Removed
	r.record(m, c.Origin)
	return 0, false, nil
}

// spare refuses to remove a voter that the others need for a quorum.
func (r *members) spare(status *agreement.Status, id uint64, force bool) error {
	live, rest := 0, len(status.Voters)-1
	for _, other := range status.Voters {
		if other != id && r.live(other) && !r.emptied(other) {
			live++
		}
	}
	switch {
	case rest == 0:
		return refuse("server %d is the only voter and cannot be removed", id)
	case live <= rest/2 && !force:
		return refuse("without server %d, %d of %d voters would be up, which is no quorum: start the others first, or use --force", id, live, rest)
	}
	return nil
}

// underway returns the change of another server that has to be completed or abandoned before a
// new one can begin.
func (r *members) underway(status *agreement.Status, but uint64) error {
	for _, m := range r.reg.Members() {
		if m.ID == but || m.Reserved() {
			continue
		}
		voter, learner := slices.Contains(status.Voters, m.ID), slices.Contains(status.Learners, m.ID)
		what := ""
		switch {
		case m.Standing == registry.Removed && (voter || learner):
			what = fmt.Sprintf("server %d is being removed: wait until that is done", m.ID)
		case m.Standing == registry.Removed || voter || learner && m.Standing == registry.Learner:
			continue
		case learner:
			what = fmt.Sprintf("server %[1]d is joining, and lacks %[2]d entries of the log: wait for it, or give it up with `conclave member remove %[1]d`", m.ID, behind(status, m.ID))
		default:
			what = fmt.Sprintf("server %[1]d is joining and has not started yet: wait for it, or cancel with `conclave member remove %[1]d`", m.ID)
		}
		return &ChangeError{Busy: true, Text: "another change of the members is under way: " + what}
	}
	return nil
}

func (r *members) unknown(status *agreement.Status, id uint64) error {
	return refuse("server %d is not a member of the cluster: its members are %v", id, append(status.Voters, status.Learners...))
}

// behind returns the number of committed entries that a server is not known to have.
func behind(status *agreement.Status, id uint64) uint64 {
	for _, p := range status.Peers {
		if p.ID == id && p.Match < status.Commit {
			return status.Commit - p.Match
		}
	}
	return 0
}

// Member is a server as seen by this one.
type Member struct {
	registry.Member
	// Voter and Learner say what the server is now, which may differ from its standing for a
	// while.
	Voter, Learner, Leader bool
	// Emptied means that it has lost its data and is being taken back. Its vote does not
	// count. Only the leader knows.
	Emptied bool
	// Match is the last entry that it is known to have, and Behind the number of committed
	// entries that it is not known to have. Only the leader knows.
	Match, Behind uint64
}

// Members returns all servers, by id, except those that are gone for good.
func (r *members) Members() []Member {
	status := r.core.Status()
	all := make(map[uint64]Member)
	for _, m := range r.reg.Members() {
		all[m.ID] = Member{Member: m}
	}
	for _, id := range append(status.Voters, status.Learners...) {
		m := all[id]
		m.ID = id
		m.Voter, m.Learner = slices.Contains(status.Voters, id), slices.Contains(status.Learners, id)
		all[id] = m
	}
	var members []Member
	for _, id := range slices.Sorted(maps.Keys(all)) {
		m := all[id]
		if m.Gone() {
			continue
		}
		m.Leader, m.Emptied = id == status.Leader, r.emptied(id)
		for _, p := range status.Peers {
			if p.ID == id {
				m.Match, m.Behind = p.Match, behind(&status, id)
			}
		}
		members = append(members, m)
	}
	return members
}

// Admitted reports whether a server takes part in agreement and will continue to. The leader
// admits a server only after it has met it.
func (m *Member) Admitted() bool {
	return (m.Voter || m.Learner) && m.Standing != registry.Removed
}

// Gone reports whether a server was removed and nothing is left to be done for that.
func (m *Member) Gone() bool {
	return m.Standing == registry.Removed && !m.Voter && !m.Learner
}

// Gone returns the servers that were removed and no longer take part in agreement, by id.
func (r *members) Gone() []uint64 {
	status := r.core.Status()
	var gone []uint64
	for _, m := range r.reg.Members() {
		if m.Standing == registry.Removed && !slices.Contains(status.Voters, m.ID) && !slices.Contains(status.Learners, m.ID) {
			gone = append(gone, m.ID)
		}
	}
	return gone
}

// checkGone stops this server when its removal is complete. Before that its vote may be
// needed to commit the removal.
func (r *members) checkGone() error {
	if slices.Contains(r.Gone(), r.cfg.ID) {
		return &RemovedError{r.cfg.ID}
	}
	return nil
}
