package registry

import (
	"fmt"
	"maps"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/access"
)

// Standing is the intended role of a server. The leader changes the configuration of
// agreement accordingly, one step at a time.
type Standing uint8

// The standings. Numbers are part of the log's format: append only.
const (
	// Voter is a member that votes, or will vote once it has caught up.
	Voter Standing = iota
	// Learner is a member that receives the log and does not vote.
	Learner
	// Removed is a server that was a member, or was joining, and never will be
	// again: its id is not given to another server.
	Removed

	standings
)

func (s Standing) String() string {
	if s < standings {
		return [standings]string{"voter", "learner", "removed"}[s]
	}
	return "unknown"
}

// MaxAddress bounds an address of a server, in bytes.
const MaxAddress = 1024

// Member is the permanent record of a server.
type Member struct {
	ID uint64
	// UID was drawn when the server's data directory was created. A server that comes back
	// with a different UID has lost its data. It is 0 while an id is only reserved.
	UID uint64
	// PeerAddress and ClientAddress are its addresses for servers and for clients, as far as
	// known.
	PeerAddress, ClientAddress string
	Standing                   Standing
}

// Reserved reports whether the id of a recorded server is only reserved. A founder that no
// server has met yet has no record at all.
func (m Member) Reserved() bool { return m.UID == 0 && m.Standing != Removed }

func (m Member) append(b []byte) []byte {
	b = wire.AppendUint(b, m.ID)
	b = wire.AppendUint(b, m.UID)
	b = wire.AppendBytes(b, m.PeerAddress)
	b = wire.AppendBytes(b, m.ClientAddress)
	return append(b, byte(m.Standing))
}

func readMember(rd *wire.Reader) Member {
	m := Member{ID: rd.Uint(), UID: rd.Uint(), PeerAddress: rd.String(), ClientAddress: rd.String(), Standing: Standing(rd.Byte())}
	if m.Standing >= standings {
		rd.Fail(fmt.Errorf("the standing %d of server %d is unknown", m.Standing, m.ID))
	}
	return m
}

// record updates the record of a server. A removal is final, whatever was under way when it
// was decided.
func (r *Registry) record(c *Command, fx *Effects) {
	m := c.member()
	if r.members[m.ID].Standing == Removed {
		return
	}
	rec := Record{Origin: c.Origin(), Kind: "member", Server: m.ID, Reason: m.Standing.String() + " at " + m.PeerAddress, Result: OK}
	if refusal := (Result{}); r.ForbidsMember(c.Origin(), m, &refusal) {
		rec.Result = refusal.Code
		r.put(rec)
		return
	}
	if next := r.rulesWith(c.Origin(), m); next != r.rules {
		r.replaceRules(next)
	}
	r.members = maps.Clone(r.members) // versions share the old one
	r.members[m.ID] = m
	fx.Members = true
	r.put(rec)
}

// ForbidsMember reports whether the rules forbid to put a server on record to whoever asks
// for it, and fills in why. A join token allows it for one server.
func (r *Registry) ForbidsMember(origin Origin, m Member, refusal *Result) bool {
	if !r.closed() || access.Source(origin.Actor) != access.Joining {
		return r.Forbids(origin, access.Members, refusal)
	}
	_, err := r.rules.Join(origin.Actor, m.PeerAddress, m.UID, r.wall)
	if err != nil {
		*refusal = Result{Code: Denied, Message: remembered(err.Error())}
	}
	return err != nil
}

// rulesWith returns the rules after a server was put on record: they have which server has joined
// by a token, and lack the join tokens that are of no more use.
func (h *head) rulesWith(origin Origin, m Member) *access.State {
	if h.rules == nil {
		return nil
	}
	next := h.rules
	if next.Mode() == access.Closed && access.Source(origin.Actor) == access.Joining {
		next, _ = next.Join(origin.Actor, m.PeerAddress, m.UID, h.wall)
	}
	gone := ""
	if m.Standing == Removed {
		gone = m.PeerAddress
	}
	return next.Trim(h.wall, gone)
}
