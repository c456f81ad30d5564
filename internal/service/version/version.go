// Package version says which formats and which behaviour a cluster uses at each
// level, so that servers can be upgraded one by one while they run.
//
// The level is a number in the replicated state. It says what may be written: a release
// reads the levels Min to Max, and writes the formats of the cluster's level even if it
// knows newer ones. The leader raises the level when every member can read the next one. So
// servers of two releases work together until the last one is replaced, and a downgrade is
// possible until then.
//
// The level also fixes the effect of log entries: a release that changes the effect of an
// entry does so from a new level on. A server that does not know an entry stops; it never
// skips one.
package version

import (
	"fmt"
	"slices"
	"strings"
)

// Min and Max are the lowest and the highest level that this release reads. Min is at most
// the Max of the previous release, so that each release can follow the one before it.
const (
	Min = 1
	Max = 5
)

// Formats are the versions of what servers write at a level.
type Formats struct {
	Entry, Snapshot byte
}

// levels has the formats of each level, from level 1 on.
var levels = [...]Formats{
	{Entry: 3, Snapshot: 3},
	{Entry: 4, Snapshot: 4},
	{Entry: 5, Snapshot: 5},
	{Entry: 6, Snapshot: 6},
	{Entry: 7, Snapshot: 7},
}

// Keeps is the level from which requests to acquire list the holds that their callers keep
// while they wait. Requests that would complete a deadlock are refused.
const Keeps = 2

// Guarded is the level from which algorithms on the servers may guard names.
const Guarded = 3

// Access is the level from which there are access rules, quotas, and an audit trail.
const Access = 4

// Linger is the level from which a name can stay closed after a hold.
const Linger = 5

// Settings is the level from which the cluster has settings, and the time of its last backup.
const Settings = Linger

// machines are the names of the algorithms that may guard names from level Guarded on. What
// they send and do is part of the level.
var machines = []string{
	"central", "central-clock", "k-ricart-agrawala", "lamport", "maekawa", "majority", "naimi-trehel", "raymond", "ricart-agrawala",
	"ricart-agrawala-token", "singhal", "suzuki-kasami", "token-ring", "total-order", "total-order-sequencer",
}

// Machines returns the names of the algorithms that may guard names at a level, sorted.
func Machines(level uint32) []string {
	if level < Guarded {
		return nil
	}
	return machines
}

// detectors and elections may watch over a view from level Guarded on, one of each together.
var (
	detectors = []string{"heartbeat", "phi-accrual", "reliable", "swim"}
	elections = []string{
		"bully", "by-load", "by-load-bully", "by-load-ring", "chang-roberts", "chang-roberts-repaired", "hirschberg-sinclair", "le-lann",
		"peterson", "ring-active-list", "ring-list",
	}
)

// Watches reports whether a stack may watch over a view at a level. A stack is a detector and
// an election, joined by a plus.
func Watches(level uint32, stack string) bool {
	detector, election, _ := strings.Cut(stack, "+")
	return level >= Guarded && slices.Contains(detectors, detector) && slices.Contains(elections, election)
}

// At returns the formats of a level. A level above all known ones, which only simulations of
// later releases have, has the formats of the highest.
func At(level uint32) Formats { return levels[min(level, uint32(len(levels)))-1] }

// CheckFormat reports whether this release reads the version of a format, which of
// selects among the Formats.
func CheckFormat(what string, found byte, of func(Formats) byte) error {
	for _, known := range levels {
		if of(known) == found {
			return nil
		}
	}
	newest := of(levels[Max-1])
	remedy := "install a newer release"
	if found < newest {
		remedy = "install the release that wrote it"
	}
	return &Error{Text: fmt.Sprintf("%s: format %d: this release reads formats up to %d; %s", what, found, newest, remedy)}
}

// Check reports whether a release that reads the levels from least to most can use a
// level.
func Check(what string, level, least, most uint32) error {
	if least <= level && level <= most {
		return nil
	}
	return &Error{Text: fmt.Sprintf("%s: level %d: this release reads levels %d to %d; install a release that reads level %d", what, level, least, most, level)}
}

// Error means that a release cannot read something. Starting again does not help.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }
