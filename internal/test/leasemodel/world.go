package leasemodel

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// What the model has of each. Three servers are the smallest cluster that survives the
// loss of one. With three, a majority is a server and any other.
const (
	servers    = 3
	maxClients = 2
)

// settings are the bounds of a search and its flaw, from the options.
type settings struct {
	clientCount int
	ttl         int // in ticks
	margin      int // by which clients stop earlier
	drift       int // by how many ticks a client's clock may be late
	terms       int // one more than the changes of the leader
	empties     int // disks that may be emptied
	revocations int
	inflight    int // entries that a leader may have proposed and not committed
	founded     bool
	bound       bool // the second question of the package comment
	coarse      bool // what clients and leaders tell each other arrives at once or never
	symmetric   bool // states that differ in the names of servers and clients are one
	flaw        Flaw
}

// status is what the registry knows of a session.
type status uint8

const (
	unopened status = iota
	open
	gone
)

var statusNames = []string{"unopened", "open", "gone"}

// registry is the state that the committed log builds, as package internal/service/registry
// builds it: two sessions, and one lock with a queue.
type registry struct {
	term      int // of the newest committed entry, 0: nothing is committed
	status    [maxClients]status
	remaining [maxClients]int  // of a silent session, else 0
	asked     [maxClients]bool // its request to acquire was applied
	holder    int              // client + 1, or 0
	waiter    int              // the same
	revoked   bool             // the holder is asked to leave
	fence     int              // of the newest grant
}

// op is what an entry of the log does.
type op uint8

const (
	opFirst op = iota // a leader's first entry
	opOpen
	opRenew
	opAcquire
	opSilence // value: what remains
	opExpire
	opRevoke
	opDrop
)

var opNames = []string{"first", "open", "renew", "acquire", "silence", "expire", "revoke", "drop"}

// entry is an entry of the log. An expiry counts only if verdict, the term in which it
// was decided, is the term of the entry. Only a flaw makes entries in which it is not.
type entry struct {
	op                           op
	term, client, value, verdict uint64
}

// phase is what a server is in the founding, and after it.
type phase uint8

const (
	fresh    phase = iota // its directory is empty
	recorded              // it has the founding record, and no state
	founder               // it votes
	blank                 // it lost its data, and waits to be taken back
)

var phaseNames = []string{"new", "recorded", "founder", "blank"}

// lease is what a leader knows of a session's time, as in internal/service/lease/lease.go.
type lease struct {
	left  int // ticks
	state leaseState
}

// ouster is what a leader knows of a revoked hold: the ticks until it is dropped, plus
// 1; 0 if nothing is revoked.
type ouster int

// leaseState is what a leader has noted of a session.
type leaseState uint8

const (
	renewed   leaseState = iota // by its client
	inherited                   // from an earlier leader, and not renewed since; only in a search of the bound
	silent                      // on record as silent, or soon
	expiring                    // its expiry is in flight
)

var leaseNames = []string{"renewed", "inherited", "silent", "expiring"}

// round is the quorum round of a leader.
type round uint8

const (
	noRound round = iota
	begun
	answered // by another server, which makes a majority
)

var roundNames = []string{"-", "begun", "answered"}

// role is what a server is in its term.
type role uint8

const (
	follower role = iota
	elected       // it leads, and has not applied an entry of its own term yet
	leader        // it has, and takes requests
)

var roleNames = []string{"follower", "elected", "leader"}

func (s *server) leads() bool { return s.role != follower }

func (s *server) ready() bool { return s.role == leader }

// server is one server: first what is on its disk, then what it forgets in a crash.
type server struct {
	phase  phase
	redrew bool // the directory is its second: the first was emptied
	record int  // the founding record: 0 none, else 1 + the set of second directories in it
	term   int
	behind bool    // its log lacks committed entries
	suffix []entry // what it has beyond the committed entries; empty if it is behind

	role   role
	leases [maxClients]lease
	round  round
	ouster ouster
	// seen is what the registry of a leader says that is behind: bit c that the session
	// is open, bit maxClients+c that the client is asked to leave.
	seen int
	// kept are the sessions on which it keeps a verdict from an earlier term, as bits.
	// Only a flaw keeps any.
	kept int
}

// mail is where the renewal of a client is.
type mail uint8

const (
	noMail mail = iota
	sent
	waits      // at a leader, for a round to begin
	inRound    // at a leader, in the round
	logged     // at a leader, in the log
	acked      // the answer is on its way
	ackRevoked // the same, and says that the hold is revoked
	refused    // the answer that the session is gone is on its way
)

var mailNames = []string{"-", "sent", "waits", "in round", "logged", "acked", "acked and revoked", "refused"}

// claim is how far a client got with the lock.
type claim uint8

const (
	noClaim claim = iota
	asking
	granted // the grant is on its way
	held
)

var claimNames = []string{"-", "asking", "granted", "held"}

// renewal is a renewal that is under way.
type renewal struct {
	mail mail
	at   int // the server that has it, + 1, or 0
	age  int // ticks since it was sent, by the client's clock
}

// client is one client. Its times are those of its own clock.
type client struct {
	status  status // gone: it knows that its session is lost, or it is dead
	left    int    // ticks until its deadline
	late    bool   // its clock is a tick late
	renewal renewal
	claim   claim
	fence   int
}

// world is the machine: all servers and clients, and the committed log.
type world struct {
	*settings
	registry registry
	servers  [servers]server
	clients  [maxClients]client

	emptied, revoked int
	entered          int  // the largest fence that a client entered with
	dead             bool // the first client has died
	outlived         int  // ticks with a leader since then, while its session goes on

	actions   []action // scratch
	decisions []uint16 // scratch; see decide
}

func newWorld(_ process.ID, c *process.Config) process.Machine {
	s := &settings{
		clientCount: c.IntOption("clients", 2), ttl: c.IntOption("ttl", 3), margin: c.IntOption("margin", 1),
		drift: c.IntOption("drift", 1), terms: c.IntOption("terms", 2), empties: c.IntOption("empties", 0),
		revocations: c.IntOption("revocations", 0), inflight: c.IntOption("inflight", 1),
		founded: c.Option("founded", "no") == "yes", bound: c.Option("bound", "no") == "yes",
		coarse: c.Option("coarse", "no") == "yes", symmetric: c.Option("symmetric", "no") == "yes",
		flaw: flawNamed(c.Option("flaw", "none")),
	}
	return &world{settings: s}
}

// Fields names the state.
func (w *world) Fields(f *process.Fields) {
	w.registry.fields(f, w.clientCount)
	for i := range w.servers {
		w.servers[i].fields(f, i, w.clientCount)
	}
	for c := range w.clientCount {
		w.clients[c].fields(f, c)
	}
	f.Count("disks emptied", &w.emptied)
	f.Count("revocations", &w.revoked)
	f.Count("largest fence", &w.entered)
	f.Bool("client 1 died", &w.dead)
	f.Count("ticks since", &w.outlived)
}

// names are made once, since states are walked over millions of times.
type names struct {
	status, remaining, asked                          [maxClients]string
	left, late, mail, at, age, claim, fence           [maxClients]string
	phase, redrew, record, term, behind, suffix, role [servers]string
	round, ouster, seen, kept                         [servers]string
	leaseLeft, leaseState                             [servers][maxClients]string
}

var name = makeNames()

func makeNames() (n names) {
	for c := range maxClients {
		session, client := fmt.Sprintf("session %d ", c+1), fmt.Sprintf("client %d ", c+1)
		n.status[c], n.remaining[c] = session+"status", session+"remaining"
		n.asked[c] = session + "asked"
		n.left[c], n.late[c], n.mail[c], n.at[c] = client+"deadline in", client+"clock late", client+"renewal", client+"renewal at"
		n.age[c], n.claim[c], n.fence[c] = client+"renewal age", client+"lock", client+"fence"
	}
	for i := range servers {
		server := fmt.Sprintf("server %d ", i+1)
		n.phase[i], n.redrew[i], n.record[i], n.term[i] = server+"phase", server+"second directory", server+"record", server+"term"
		n.behind[i], n.suffix[i], n.role[i] = server+"behind", server+"uncommitted", server+"role"
		n.round[i], n.ouster[i], n.seen[i], n.kept[i] = server+"round", server+"drops in", server+"seen", server+"kept"
		for c := range maxClients {
			lease := fmt.Sprintf("%slease %d ", server, c+1)
			n.leaseLeft[i][c], n.leaseState[i][c] = lease+"left", lease+"state"
		}
	}
	return n
}

func (r *registry) fields(f *process.Fields, clients int) {
	f.Count("committed term", &r.term)
	for c := range clients {
		process.Enum(f, name.status[c], &r.status[c], statusNames)
		f.Count(name.remaining[c], &r.remaining[c])
		f.Bool(name.asked[c], &r.asked[c])
	}
	f.Count("holder", &r.holder)
	f.Count("waiter", &r.waiter)
	f.Bool("holder revoked", &r.revoked)
	f.Count("fence", &r.fence)
}

func (s *server) fields(f *process.Fields, i, clients int) {
	process.Enum(f, name.phase[i], &s.phase, phaseNames)
	f.Bool(name.redrew[i], &s.redrew)
	f.Count(name.record[i], &s.record)
	f.Count(name.term[i], &s.term)
	f.Bool(name.behind[i], &s.behind)
	process.List(f, name.suffix[i], &s.suffix, entryFields)
	process.Enum(f, name.role[i], &s.role, roleNames)
	for c := range clients {
		l := &s.leases[c]
		f.Count(name.leaseLeft[i][c], &l.left)
		process.Enum(f, name.leaseState[i][c], &l.state, leaseNames)
	}
	process.Enum(f, name.round[i], &s.round, roundNames)
	f.Count(name.ouster[i], (*int)(&s.ouster))
	f.Count(name.seen[i], &s.seen)
	f.Count(name.kept[i], &s.kept)
}

func entryFields(f *process.Fields, e *entry) {
	process.Enum(f, "op", &e.op, opNames)
	f.Uint("term", &e.term)
	f.Uint("client", &e.client)
	f.Uint("value", &e.value)
	f.Uint("verdict", &e.verdict)
}

func (c *client) fields(f *process.Fields, i int) {
	process.Enum(f, name.status[i], &c.status, statusNames)
	f.Count(name.left[i], &c.left)
	f.Bool(name.late[i], &c.late)
	process.Enum(f, name.mail[i], &c.renewal.mail, mailNames)
	f.Count(name.at[i], &c.renewal.at)
	f.Count(name.age[i], &c.renewal.age)
	process.Enum(f, name.claim[i], &c.claim, claimNames)
	f.Count(name.fence[i], &c.fence)
}
