package world

import (
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
)

// Parts make the parts of a world that only some plans have.
type Parts struct {
	Hosts func(w *World) Hosts
	Seats func(w *World) StandIn
	Rules func(w *World) Rules
	Names func(w *World) Names
}

// guards are what a world asks of an operator who changes the guards of names, and of the judge of
// seats and views.
type guards interface {
	Heal()
	Watch(s *Server, first bool)
	Unfinished(leader *Server) string
	Transmit(from, to *Server, do func())
}

// StandIn is a stand-in for the algorithms that guard names.
type StandIn interface {
	guards
	Answer(s *Server, seats []replica.SeatReply)
	Tell(replies []replica.Reply)
}

// Hosts run the algorithms that guard names beside the replicas, in the same turns.
type Hosts interface {
	guards
	Begin(s *Server)
	Stop(s *Server)
	Leave(s *Server, f faults.Fault)
	Tick(s *Server)
	Follow(s *Server, out *replica.Output)
	CarryOut(s *Server)
	Revoke(res *Resource, by string)
	Granted(h *Hold)
	Beside(h *Hold)
}

// Rules are an administrator who changes the rules, and a judge of the decisions about them.
type Rules interface {
	Heal()
	Follow(s *Server, to uint64)
	AtHomes() HomeRules
}

// Names are an operator who changes the setting names, clients that ask for names in two forms, and a judge.
type Names interface {
	Follow(s *Server, to uint64)
	// Asks records that a client transmits a request for a name for the first time, and Told that the
	// operator gets an answer.
	Asks(id registry.ClaimID, name string)
	Told(o registry.Outcome)
}

// HomeRules judge what homes decide by the rules.
type HomeRules interface {
	Strip()
	Asks(commands []registry.Command)
	Grants(s *Server, h registry.Holding)
	Begins(h *Hold)
	Refuses(s *Server, owner string, r *host.Reply)
}

// HomeRules returns the judge of the rules at homes, or nil.
func (w *World) HomeRules() HomeRules {
	if w.rules == nil {
		return nil
	}
	return w.rules.AtHomes()
}
