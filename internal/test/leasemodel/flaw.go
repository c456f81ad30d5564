package leasemodel

import "github.com/conclave-io/conclave/process"

// Flaw is a mistake: one rule that is left out or changed.
type Flaw uint8

// The flaws. What each does stands in Flaws.
const (
	None Flaw = iota
	NoRound
	OldRound
	KeptVerdict
	NoTerm
	KeptWithoutTerm
	RenewedWhileExpiring
	Revived
	RevivedWhileExpiring
	HalfTTL
	OldLeases
	NoSilence
	SilentByRound
	SilentForGood
	NoMargin
	FromAnswer
	GrantRenews
	RevokedAtOnce
	RevokedUntold
	BlankVotes
	BlankAnswers
	BlankRounds
	FoundsByTwo

	flawEnd
)

// Variant is the protocol with a flaw, and the smallest bounds that are known to show
// what happens.
type Variant struct {
	Flaw    Flaw
	Name    string
	Mistake string // in one sentence
	// Options are the bounds. Those that are not named have their defaults.
	Options []process.OptionValue
	// Breaks is how the violation begins, empty if the flaw by itself does no harm.
	Breaks string
	// States is how many one worker comes through until it has found that, and Steps how
	// long the shortest run to it is.
	States uint64
	Steps  int
}

func (f Flaw) String() string { return Variants[f].Name }

func flawNamed(name string) Flaw {
	for f := range flawEnd {
		if Variants[f].Name == name {
			return f
		}
	}
	return None
}

func flawNames() (names []string) {
	for i := range Variants {
		names = append(names, Variants[i].Name)
	}
	return names
}

// What the judge says; see world.judge.
const (
	believes = "a client wrongly believes that it holds the lock"
	lost     = "a committed entry is lost"
	outlives = "a dead client keeps its session"
)

func options(nameAndValue ...string) (all []process.OptionValue) {
	for i := 0; i < len(nameAndValue); i += 2 {
		all = append(all, process.OptionValue{Name: nameAndValue[i], Value: nameAndValue[i+1]})
	}
	return all
}

// one is a founded cluster with one client, which is enough where somebody's session
// ends too early.
func one(more ...string) []process.OptionValue {
	return options(append([]string{"clients", "1", "founded", "yes"}, more...)...)
}

// quick is one with exact clocks, and without messages that are late, where the search
// would be long otherwise. What goes wrong without them goes wrong with them.
func quick(more ...string) []process.OptionValue {
	return one(append([]string{"ttl", "2", "margin", "0", "drift", "0", "coarse", "yes"}, more...)...)
}

// Variants has all flaws, each at the index of its number. It is never changed.
var Variants = [flawEnd]Variant{
	None: {
		Flaw: None, Name: "none", Mistake: "It makes no mistake.",
	},
	NoRound: {
		Flaw: NoRound, Name: "no-round", Mistake: "A leader acknowledges a renewal without a quorum round.",
		Options: one(), Breaks: believes, States: 152618, Steps: 20,
	},
	OldRound: {
		Flaw: OldRound, Name: "old-round", Mistake: "A renewal joins the round that is under way, which may have been answered before.",
		Options: one(), Breaks: believes, States: 118928, Steps: 25,
	},
	KeptVerdict: {
		Flaw: KeptVerdict, Name: "kept-verdict", Mistake: "A deposed leader keeps its verdicts, and proposes them when it leads again.",
		Options: quick("terms", "3"), States: 143503,
	},
	NoTerm: {
		Flaw: NoTerm, Name: "no-term", Mistake: "An expiry counts in an entry of any term.",
		Options: quick("terms", "3"), States: 31555,
	},
	KeptWithoutTerm: {
		Flaw: KeptWithoutTerm, Name: "kept-verdict-no-term", Mistake: "A deposed leader keeps its verdicts, and they count in any term.",
		Options: quick("terms", "3"), Breaks: believes, States: 64214, Steps: 13,
	},
	RenewedWhileExpiring: {
		Flaw: RenewedWhileExpiring, Name: "renewed-while-expiring", Mistake: "A session takes renewals while its expiry is in flight.",
		Options: one("terms", "1"), States: 29930,
	},
	Revived: {
		Flaw: Revived, Name: "revived", Mistake: "A client believes again when an answer comes after its deadline.",
		Options: one("terms", "1"), States: 63980,
	},
	RevivedWhileExpiring: {
		Flaw: RevivedWhileExpiring, Name: "revived-while-expiring", Mistake: "A session takes renewals while its expiry is in flight, and its client believes again.",
		Options: one("terms", "1"), Breaks: believes, States: 70695, Steps: 21,
	},
	HalfTTL: {
		Flaw: HalfTTL, Name: "half-ttl", Mistake: "A new leader gives sessions half of their TTL.",
		Options: one(), Breaks: believes, States: 46141, Steps: 14,
	},
	OldLeases: {
		Flaw: OldLeases, Name: "old-leases", Mistake: "A leader continues with its leases of an earlier term.",
		Options: quick("terms", "3"), Breaks: believes, States: 177217, Steps: 17,
	},
	NoSilence: {
		Flaw: NoSilence, Name: "no-silence", Mistake: "A leader does not put it on record that a session is silent.",
		Options: one("bound", "yes", "terms", "3", "ttl", "4", "drift", "0"), Breaks: outlives, States: 49741, Steps: 20,
	},
	SilentByRound: {
		Flaw: SilentByRound, Name: "silent-by-round", Mistake: "A session on record as silent is renewed by a round alone.",
		Options: one(), Breaks: believes, States: 134552, Steps: 24,
	},
	SilentForGood: {
		Flaw: SilentForGood, Name: "silent-for-good", Mistake: "A renewal through the log leaves the session on record as silent.",
		Options: one(), Breaks: believes, States: 169323, Steps: 21,
	},
	NoMargin: {
		Flaw: NoMargin, Name: "no-margin", Mistake: "A client believes until its TTL is over on its own clock.",
		Options: one("terms", "1", "margin", "0"), Breaks: believes, States: 26496, Steps: 15,
	},
	FromAnswer: {
		Flaw: FromAnswer, Name: "from-answer", Mistake: "A client counts its deadline from the answer, not from when it sent the renewal.",
		Options: one("terms", "1"), Breaks: believes, States: 16719, Steps: 15,
	},
	GrantRenews: {
		Flaw: GrantRenews, Name: "grant-renews", Mistake: "A client takes a grant for a renewal of its session.",
		Options: one("terms", "1"), Breaks: believes, States: 13767, Steps: 15,
	},
	RevokedAtOnce: {
		Flaw: RevokedAtOnce, Name: "revoked-at-once", Mistake: "A leader drops a revoked hold at once.",
		Options: one("terms", "1", "revocations", "1"), Breaks: believes, States: 13398, Steps: 14,
	},
	RevokedUntold: {
		Flaw: RevokedUntold, Name: "revoked-untold", Mistake: "The answer to a renewal does not say that a hold is revoked.",
		Options: one("terms", "1", "revocations", "1"), Breaks: believes, States: 68578, Steps: 23,
	},
	BlankVotes: {
		Flaw: BlankVotes, Name: "blank-votes", Mistake: "A server that lost its data takes itself for a founder, and votes.",
		Options: one("empties", "1"), Breaks: lost, States: 1819, Steps: 6,
	},
	BlankAnswers: {
		Flaw: BlankAnswers, Name: "blank-answers", Mistake: "A server that lost its data answers rounds and takes entries.",
		Options: quick("empties", "1"), Breaks: believes, States: 141254, Steps: 16,
	},
	BlankRounds: {
		Flaw: BlankRounds, Name: "blank-rounds", Mistake: "A server that lost its data answers rounds.",
		Options: quick("empties", "1"), Breaks: believes, States: 122971, Steps: 16,
	},
	FoundsByTwo: {
		Flaw: FoundsByTwo, Name: "founds-by-two", Mistake: "Founders do not wait for the third one.",
		Options: options("clients", "1", "empties", "1", "coarse", "yes"), Breaks: lost, States: 13363, Steps: 13,
	},
}

// keeps reports whether a deposed leader keeps its verdicts.
func (f Flaw) keeps() bool { return f == KeptVerdict || f == KeptWithoutTerm }

// isolated reports whether leaders that are cut off may tell clients something.
func (f Flaw) isolated() bool {
	return f == NoRound || f == BlankAnswers || f == BlankRounds || f.keeps()
}

// revives reports whether a client believes again after its deadline.
func (f Flaw) revives() bool { return f == Revived || f == RevivedWhileExpiring }

// renewsExpiring reports whether sessions take renewals while their expiry is in flight.
func (f Flaw) renewsExpiring() bool { return f == RenewedWhileExpiring || f == RevivedWhileExpiring }

// Search is a search that proves something, within bounds that its name tells. Where it
// does not say otherwise the TTL is 3 ticks, the margin 1, a client's clock is a tick
// late at most, and the search begins with three empty disks.
type Search struct {
	Name    string
	Options []process.OptionValue
}

// Searches are those that docs/verification.md reports, the small ones first. Two changes
// of the leader are three terms.
var Searches = []Search{
	{"1 client, 2 changes of the leader", options("clients", "1", "terms", "3")},
	{"1 client, 1 change of the leader, 1 emptied disk", options("clients", "1", "empties", "1")},
	{"1 client, 1 change of the leader, 1 revocation, 2 entries in flight, founded", one("revocations", "1", "inflight", "2")},
	{"1 client that dies, TTL 4, exact clocks, 3 changes of the leader, founded: its session ends within 2 TTLs",
		one("bound", "yes", "ttl", "4", "drift", "0", "terms", "4")},
	{"2 clients, 1 leader, founded, symmetric", options("terms", "1", "founded", "yes", "symmetric", "yes")},
	{"2 clients, 2 changes of the leader, 1 revocation, founded, coarse, symmetric",
		large("terms", "3", "revocations", "1", "founded", "yes")},
	{"2 clients, 1 change of the leader, 1 emptied disk, 1 revocation, founded, coarse, symmetric",
		large("empties", "1", "revocations", "1", "founded", "yes")},
	{"2 clients, 2 changes of the leader, 1 emptied disk, coarse, symmetric", large("terms", "3", "empties", "1")},
}

// large are bounds without messages that are late, and without names.
func large(more ...string) []process.OptionValue {
	return options(append([]string{"coarse", "yes", "symmetric", "yes"}, more...)...)
}
