package access

import (
	"math/bits"
	"slices"
	"strings"
)

// Verb is something that a rule allows or denies. The numbers are part of the format of
// entries and snapshots: append only.
type Verb uint8

// The verbs on names, then those on the cluster.
const (
	Read   Verb = iota // holders, waiters, values, and what happened to them
	Hold               // acquire, campaign, update, transfer
	Revoke             // ask holders to leave

	Status     // how the cluster is
	Sessions   // who is connected
	EndSession // end the session of somebody else
	Members    // add, move and remove servers; settings, guards, views and leadership
	Backup     // take a backup
	AccessRead // read the rules
	Access     // change the rules
	Audit      // read the record of acts
	Upgrade    // hold, raise and lower the level
	verbs      // their number
	onNames    = Verbs(1<<Read | 1<<Hold | 1<<Revoke)
	everything = Verbs(1<<verbs - 1)
)

var verbNames = [verbs]string{
	"read", "hold", "revoke",
	"status", "sessions", "end-session", "members", "backup", "access-read", "access", "audit", "upgrade",
}

// acts describes what the verbs allow.
var acts = [verbs]string{
	"read", "hold", "revoke",
	"see the status of the cluster", "list sessions", "end the session of another principal", "change members, settings, guards or views",
	"take a backup", "read the rules", "change the rules", "read the audit log", "change the level",
}

func (v Verb) String() string {
	if v < verbs {
		return verbNames[v]
	}
	return "unknown"
}

// OnNames reports whether a verb applies to names and not to the cluster.
func (v Verb) OnNames() bool { return v.in(onNames) }

// ParseVerb returns the verb with a name.
func ParseVerb(name string) (Verb, error) {
	if i := slices.Index(verbNames[:], name); i >= 0 {
		return Verb(i), nil
	}
	return 0, invalid("verb", name, "must be one of "+strings.Join(verbNames[:], ", "))
}

// Verbs is a set of verbs.
type Verbs uint32

// Of returns the set of the given verbs.
func Of(of ...Verb) (set Verbs) {
	for _, v := range of {
		set |= 1 << v
	}
	return set
}

// ParseVerbs returns the verbs in a list of names separated by commas.
func ParseVerbs(list string) (set Verbs, err error) {
	for name := range strings.SplitSeq(list, ",") {
		v, err := ParseVerb(strings.TrimSpace(name))
		if err != nil {
			return 0, err
		}
		set |= 1 << v
	}
	return set, nil
}

func (v Verb) in(set Verbs) bool { return set>>v&1 != 0 }

// List returns the verbs of a set in order.
func (set Verbs) List() []Verb {
	list := make([]Verb, 0, bits.OnesCount32(uint32(set)))
	for ; set != 0; set &= set - 1 {
		list = append(list, Verb(bits.TrailingZeros32(uint32(set))))
	}
	return list
}

// String returns the names separated by commas, as ParseVerbs reads them.
func (set Verbs) String() string {
	var names []string
	for _, v := range set.List() {
		names = append(names, v.String())
	}
	return strings.Join(names, ",")
}

// Class is the class of names that a rule is about. The first two numbers are those of the
// registry.
type Class uint8

// The classes.
const (
	Lock Class = iota
	Election
	Any

	classes = 2 // that names have
)

var classNames = [...]string{"lock", "election", "any"}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// ParseClass returns the class of a name.
func ParseClass(name string) (Class, error) {
	if i := slices.Index(classNames[:], name); i >= 0 {
		return Class(i), nil
	}
	return 0, invalid("class", name, "must be lock, election or any")
}
