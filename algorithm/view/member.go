package view

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// State is the state of a member in the view.
type State uint8

// The states of a member.
const (
	Out      State = iota // its seat is not in the view
	Resuming              // it enters again the names that its clients hold, and waits for all others
	Open                  // it asks for new names
)

var stateNames = []string{"OUT", "RESUMING", "OPEN"}

// String returns the name of the state.
func (s State) String() string { return stateNames[s] }

// Member is what a server does about views. Rules M and L4. A new Member has a Server
// and a Seat; everything else begins at zero.
type Member struct {
	Server uint64
	Seat   [2]uint64 // the id of its own seat; zero: none
	Lapsed bool      // the lease of its seat may have expired (S4)
	View             // the latest view that it has begun, or has seen while it is out
	State  State

	Begun   bool         // all names that are held were asked for in this epoch
	Left    int          // number of these that were not granted yet
	Said    bool         // it has sent RESUMED
	Resumed []process.ID // the others that have, by rank, sorted
}

// Change is what an entry of the log means for a member.
type Change uint8

// The changes.
const (
	Same  Change = iota // nothing
	Began               // another epoch, with its seat in it
	Left                // another epoch without its seat
)

// Apply takes the present view of the log (M1, M5). If an epoch began, the caller drops
// all machines, their timers and all frames of earlier epochs, calls Begin for each name
// that it knows, and then sets Begun.
func (m *Member) Apply(v *View) Change {
	if v.Epoch <= m.Epoch {
		return Same
	}
	m.View, m.Begun, m.Left, m.Said, m.Resumed = *v, false, 0, false, nil
	m.State = Out
	if m.Rank() == process.None {
		return Left
	}
	m.State = Resuming
	return Began
}

// Rank returns the rank of the member in its view, or None.
func (m *Member) Rank() process.ID {
	return process.ID(slices.Index(m.Members, Seat{m.Server, m.Seat}))
}

// RankOf returns the rank of a server in the view, or None.
func (m *Member) RankOf(server uint64) process.ID {
	return process.ID(slices.IndexFunc(m.Members, func(s Seat) bool { return s.Server == server }))
}

// Fate is what to do with a frame that has arrived.
type Fate uint8

// The fates of a frame.
const (
	Drop Fate = iota
	Take
	Keep // until its epoch begins
)

// Fate says what to do with a frame of an epoch (L4).
func (m *Member) Fate(epoch uint64) Fate {
	switch {
	case epoch > m.Epoch:
		return Keep
	case m.State != Out && epoch == m.Epoch:
		return Take
	}
	return Drop
}

// Hear notes that the member of that rank has sent RESUMED in this epoch.
func (m *Member) Hear(rank process.ID) {
	if at, found := slices.BinarySearch(m.Resumed, rank); !found {
		m.Resumed = slices.Insert(slices.Clone(m.Resumed), at, rank)
	}
}

// Advance moves the member as far as it can go. It reports whether the member sends
// RESUMED to all others now (M3), and whether it opens (M4).
func (m *Member) Advance() (resumes, opens bool) {
	if m.State != Resuming || !m.Begun {
		return false, false
	}
	if !m.Said && m.Left == 0 {
		m.Said, resumes = true, true
	}
	if m.Said && len(m.Resumed) == len(m.Members)-1 {
		m.State, opens = Open, true
	}
	return resumes, opens
}

// Name is what a home knows about one name: what its clients want and what its machine
// was asked in this epoch. Rules M2 and I4.
type Name struct {
	Wanted bool // a client waits
	Held   bool // a client holds
	Phase  Phase
	Again  bool // the machine was asked for a hold from before this epoch
}

// Phase is what the machine of a name was last asked.
type Phase uint8

// The phases of a machine.
const (
	Idle Phase = iota
	Asked
	Inside
)

// Feed is the event to give to the machine of a name now.
type Feed uint8

// The events.
const (
	Nothing Feed = iota
	Acquire
	Release
	Cancel
)

// Begin is called for each name when an epoch has begun: what is held is entered again
// (M2).
func (m *Member) Begin(n *Name) Feed {
	n.Phase, n.Again = Idle, false
	if !n.Held {
		return Nothing
	}
	n.Phase, n.Again = Asked, true
	m.Left++
	return Acquire
}

// Next returns the next event after a change of the name or the member. The parameter
// draining says that its guard drains (G3), and cancels that its algorithm has a rule
// for Cancel.
func (m *Member) Next(n *Name, draining, cancels bool) Feed {
	switch {
	case n.Phase == Asked && !n.Again && cancels && (draining || !n.Wanted):
		n.Phase = Idle
		return Cancel
	case n.Phase == Idle && n.Wanted && !n.Held && m.State == Open && !m.Lapsed && !draining:
		n.Phase = Asked
		return Acquire
	}
	return Nothing
}

// Granted handles the grant of a machine. It reports whether to tell the waiting
// client, which holds from now on. A grant that is no longer wanted, or must not be
// reported, is returned.
func (m *Member) Granted(n *Name, draining bool) (tell bool, feed Feed) {
	n.Phase = Inside
	if n.Again {
		n.Again = false
		m.Left--
		if n.Held {
			return false, Nothing
		}
	} else if n.Wanted && !draining && !m.Lapsed {
		n.Wanted, n.Held = false, true
		return true, Nothing
	}
	n.Phase = Idle
	return false, Release
}

// Leave ends a hold. If the hold is just being entered again, it is returned when it is
// granted.
func (m *Member) Leave(n *Name) Feed {
	n.Held = false
	if n.Phase != Inside {
		return Nothing
	}
	n.Phase = Idle
	return Release
}

// Quiet reports whether nothing is held, asked for or being entered again (G4).
func (m *Member) Quiet(n *Name) bool {
	return !n.Held && n.Phase == Idle
}
