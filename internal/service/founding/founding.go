// Package founding decides the role of a server with an empty data directory: a
// founder of a new cluster, or a server that lost its data. It does no I/O, so
// that tests can try every order of crashes.
//
// A founder may vote. A server that lost its data may not: it has forgotten its
// votes and the entries that it acknowledged. The rules, and why they are safe,
// are in docs/adr/0006.
package founding

import (
	"errors"
	"fmt"
	"slices"
)

// MaxFounders bounds a record.
const MaxFounders = 128

// Phase is the state of founding at a server. Phases are sent to other servers: new
// ones are appended, and none is ever reused.
type Phase uint8

const (
	// NotReady is no answer: the server does not know its role yet, or takes no part
	// in founding.
	NotReady Phase = iota
	// New is a server with an empty directory that wants to found a cluster.
	New
	// Restored is like New, with a directory that holds only the state of a backup.
	Restored
	// Recorded is a server that has a record on its disk but no state yet.
	Recorded
	// Founded is a server that has a record and state of the cluster.
	Founded

	// Phases is the number of phases.
	Phases
)

// Founder is a server of a Record.
type Founder struct{ ID, UID uint64 }

// Record says with which data directories a cluster is founded, in ascending order of
// ids. A directory has at most one record in its lifetime.
type Record []Founder

// UID returns the directory of a server, 0 if the server is no founder.
func (r Record) UID(id uint64) uint64 {
	for _, f := range r {
		if f.ID == id {
			return f.UID
		}
	}
	return 0
}

// Check reports an error for a record that cannot exist.
func (r Record) Check() error {
	if len(r) == 0 || len(r) > MaxFounders {
		return fmt.Errorf("founding record: %d servers: must be 1 to %d", len(r), MaxFounders)
	}
	last := uint64(0)
	for _, f := range r {
		switch {
		case f.ID <= last:
			return errors.New("founding record: server ids must be positive and ascending")
		case f.UID == 0:
			return fmt.Errorf("founding record: server %d: missing uid", f.ID)
		}
		last = f.ID
	}
	return nil
}

// Equal reports whether two records are the same.
func (r Record) Equal(other Record) bool { return slices.Equal(r, other) }

// names reports whether the record has exactly the given servers.
func (r Record) names(ids []uint64) bool {
	return slices.EqualFunc(r, ids, func(f Founder, id uint64) bool { return f.ID == id })
}

// Answer is what a server last said about itself.
type Answer struct {
	UID    uint64
	Phase  Phase
	Record Record // nil unless Recorded or Founded
}

// Server is a server with an empty data directory.
type Server struct {
	ID, UID uint64
	// Founders are the ids of all founders, itself included, in ascending order.
	Founders []uint64
	// Restored says that the directory has the state of a backup.
	Restored bool
	// Record is the one on its disk, or nil.
	Record Record
}

// Step is what a server does next.
type Step uint8

const (
	// Wait means to do nothing until an answer changes.
	Wait Step = iota
	// Write writes Decision.Record to the disk for good, and tells the others.
	Write
	// Found starts the server as a founder, which votes.
	Found
	// Rejoin starts the server blank, without a vote, until the others take it back.
	Rejoin
	// Resume starts the server with what its disk holds: state of the cluster, or nothing yet
	// if it joined.
	Resume
)

// Decision is a step and its reason.
type Decision struct {
	Step   Step
	Record Record // of Write
	// Missing are the servers that Wait waits for, in ascending order.
	Missing []uint64
	// Differs means that the Missing servers have a different record, or one of other
	// founders, so waiting does not help.
	Differs bool
}

// Says returns the answer of this server to the others. A server that has heard of a
// record is no longer New, even if the record is not on its disk yet.
func (s Server) Says(answers map[uint64]Answer) Answer {
	switch {
	case s.Record != nil:
		return Answer{UID: s.UID, Phase: Recorded, Record: s.Record}
	case s.Restored:
		return Answer{UID: s.UID, Phase: Restored}
	}
	for _, id := range s.others() {
		if answers[id].Record != nil {
			return Answer{UID: s.UID}
		}
	}
	return Answer{UID: s.UID, Phase: New}
}

// Equal reports whether two decisions wait for the same servers.
func (d Decision) Equal(other Decision) bool {
	return d.Differs == other.Differs && slices.Equal(d.Missing, other.Missing)
}

// Decide returns the next step of a server that has heard the given answers, by the id of
// the answering server.
func (s Server) Decide(answers map[uint64]Answer) Decision {
	if s.Record == nil {
		return s.agree(answers)
	}
	if s.Record.UID(s.ID) != s.UID {
		return Decision{Step: Rejoin}
	}
	var missing, differ []uint64
	for _, id := range s.others() {
		switch a := answers[id]; {
		case a.Record == nil:
			missing = append(missing, id)
		case !a.Record.Equal(s.Record):
			differ = append(differ, id)
		case a.Phase == Founded:
			return Decision{Step: Found}
		}
	}
	return wait(missing, differ, Decision{Step: Found})
}

// agree finds the record: that of another server, or the first record.
func (s Server) agree(answers map[uint64]Answer) Decision {
	var record Record
	var missing, holders, differ []uint64
	restored := 0
	if s.Restored {
		restored++
	}
	for _, id := range s.others() {
		switch a := answers[id]; {
		case a.Phase == New:
		case a.Phase == Restored:
			restored++
		case a.Record == nil:
			missing = append(missing, id)
		case !a.Record.names(s.Founders), record != nil && !a.Record.Equal(record):
			differ = append(differ, id)
		default:
			record, holders = a.Record, append(holders, id)
		}
	}
	old := s.Restored && record.UID(s.ID) != s.UID // perhaps of the cluster that was backed up
	switch proposer := s.Founders[0]; {
	case record != nil && old && 2*restored > len(s.Founders):
		// A majority of the disks is gone, and the old cluster with them.
		return Decision{Missing: holders, Differs: true}
	case record != nil && old:
		return wait(missing, differ, Decision{Step: Write, Record: record})
	case record != nil:
		return wait(nil, differ, Decision{Step: Write, Record: record})
	case s.ID != proposer && len(missing) == 0:
		missing = []uint64{proposer}
	}
	return wait(missing, differ, Decision{Step: Write, Record: s.first(answers)})
}

// first returns the first record, if all servers are new.
func (s Server) first(answers map[uint64]Answer) Record {
	first := make(Record, len(s.Founders))
	for i, id := range s.Founders {
		first[i] = Founder{id, answers[id].UID}
		if id == s.ID {
			first[i].UID = s.UID
		}
	}
	return first
}

// wait returns otherwise, unless there are servers to wait for.
func wait(missing, differ []uint64, otherwise Decision) Decision {
	switch {
	case len(differ) > 0:
		return Decision{Missing: differ, Differs: true}
	case len(missing) > 0:
		return Decision{Missing: missing}
	}
	return otherwise
}

func (s Server) others() []uint64 {
	return slices.DeleteFunc(slices.Clone(s.Founders), func(id uint64) bool { return id == s.ID })
}
