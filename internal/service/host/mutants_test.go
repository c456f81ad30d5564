package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/test/mutation"
)

// mutant is a host with a mistake.
type mutant struct {
	name, why string
	edits     []mutation.Edit
}

const (
	memberFile   = "algorithm/view/member.go"
	machinesFile = "internal/service/host/machines.go"
	linkFile     = "internal/service/host/link.go"
	receiveFile  = "internal/service/host/receive.go"
	hostMember   = "internal/service/host/member.go"
	homeFile     = "internal/service/host/home.go"
	leaveFile    = "internal/service/host/leave.go"
	cutFile      = "internal/service/host/cut.go"
	nearFile     = "internal/service/host/near.go"
)

func one(file, old, new string) []mutation.Edit {
	return []mutation.Edit{{File: file, Old: old, New: new}}
}

var mutants = []mutant{
	{"open-without-barrier", "A member asks for new names without waiting for RESUMED of all.",
		one(memberFile, "m.Said && len(m.Resumed) == len(m.Members)-1 {", "m.Said {")},
	{"resumed-before-grants", "RESUMED is said when what is held was asked for, not when it was granted.",
		one(memberFile, "!m.Said && m.Left == 0", "!m.Said && m.Left >= 0")},
	{"holds-not-entered-again", "What is held is not entered again.",
		one(memberFile, "if !n.Held {", "if n.Held || !n.Held {")},
	{"machines-kept", "Machines outlive a START.",
		one(machinesFile, "in.epoch, in.begun, in.machine, in.timers = m.member.Epoch, false, nil, in.timers[:0]",
			"in.epoch, in.begun = m.member.Epoch, false")},
	{"old-frames", "Frames of earlier epochs are taken.",
		one(memberFile, "m.State != Out && epoch == m.Epoch", "m.State != Out && epoch <= m.Epoch")},
	{"newer-frames-dropped", "Frames of later epochs are dropped, not kept.",
		one(receiveFile, "		return l.keep(&b)", "		return nil")},
	{"taken-twice", "A frame that is sent again is taken again.",
		one(linkFile, "		if number <= *got {\n			continue\n		}\n		if number != *got+1 {", "		if number > *got+1 {")},
	{"not-sent-again", "What was not acknowledged is not sent again on the next lane.",
		one(linkFile, "l.up, l.out = up, l.skip", "l.up = up")},
	{"fence-without-epoch", "A fence is that of the machine alone.",
		one(machinesFile, "m.member.Epoch<<fenceBits|uint64(f)", "uint64(f)")},
	{"base-of-zero", "Machines that are made after a drop begin at zero.",
		one("internal/service/host/prefix.go", "if s.base == (process.Base{}) {", "if s.base == s.base {")},
	{"token-forgotten", "Any machine is dropped when nothing is wanted of it, also one with a token.",
		one(machinesFile, "if idler, ok := in.machine.(process.Idler); !ok || !idler.Idle() {", "if idler, ok := in.machine.(process.Idler); ok && !idler.Idle() {")},
	{"unwanted-grant-kept", "A grant that nobody wants any more is not given back.",
		one(memberFile, "	n.Phase = Idle\n	return false, Release\n}\n\n// Leave", "	n.Phase = Idle\n	return false, Nothing\n}\n\n// Leave")},
	{"quiet-while-held", "Quiet is said while something is held.",
		one(memberFile, "return !n.Held && n.Phase == Idle", "return n.Held || n.Phase == Idle")},
	{"fed-while-draining", "Names under a guard that drains are asked for and granted.",
		[]mutation.Edit{
			{File: memberFile, Old: "cancels && (draining || !n.Wanted)", New: "cancels && !n.Wanted"},
			{File: memberFile, Old: "!m.Lapsed && !draining:", New: "!m.Lapsed:"},
			{File: memberFile, Old: "n.Wanted && !draining && !m.Lapsed", New: "n.Wanted && !m.Lapsed"},
		}},
	{"two-requests", "A second request is made while the first waits.",
		one(memberFile, "case n.Phase == Idle && n.Wanted && !n.Held &&", "case n.Phase != Inside && n.Wanted && !n.Held &&")},
	{"present-prefixes", "A prefix made in mid-epoch has its names at once, and they begin without the marks of the old one.",
		[]mutation.Edit{
			{File: machinesFile, Old: "	for _, s := range m.prefixes {\n		if strings.HasPrefix(name, s.prefix) && (found", New: "	for i := range m.guards.list {\n		g := &m.guards.list[i]\n		if g.New && g.Use.Guarded() && !slices.ContainsFunc(m.prefixes, func(s *guardedPrefix) bool { return s.prefix == g.Prefix }) {\n			m.prefixes = append(m.prefixes, m.newPrefix(&g.Guard, 0))\n		}\n	}\n	for _, s := range m.prefixes {\n		if strings.HasPrefix(name, s.prefix) && (found"},
		}},
	{"lapsed-tells", "A member whose seat has lapsed tells grants.",
		one(memberFile, "n.Wanted && !draining && !m.Lapsed", "n.Wanted && !draining")},
	{"asleep", "The coordinator of a token ring is not woken: the first name waits forever.",
		one(machinesFile, "			m.wake(in)\n", "")},
	{"answered-by-an-earlier-renewal", "A client's Renew is answered by a renewal of the seat that was sent before it came.",
		one("internal/service/host/home.go", "h.asks[n].after < command", "h.asks[n].after < command+100")},
	{"answered-at-once", "A client's Renew is answered from the deadline of the seat.",
		one("internal/service/host/home.go", "h.leaseClock(), h.seat.sequence})", "h.leaseClock(), h.seat.sequence})\n\tif h.now < h.seat.until {\n\t\th.promise(1<<62, h.seat.until+mu(h.cfg.lease())-h.now)\n\t}")},
	{"more-than-the-seat-has", "A client is promised its own TTL, whatever the seat was given.",
		one("internal/service/host/home.go", "given := min(h.span(s.TTL), remaining)", "given := s.TTL + 0*remaining")},
	{"ended-early", "A home ends a session from its last answer on as if it had come when it was sent first.",
		one("internal/service/host/home.go", "h.leases.Extend(a.session, a.at+given)", "h.leases.Extend(a.session, a.at+given/2)")},
	{"acknowledged-while-kept", "Frames of a later epoch are acknowledged and then forgotten.",
		one(receiveFile, "		l.kept = kept{}\n		from", "		l.got = k.count\n		l.kept = kept{}\n		continue\n		from")},
	{"late-grant-kept", "A hold that ended while it was entered again is kept.",
		one(memberFile, "\t\tif n.Held {", "\t\tif true {")},
	{"left-while-held", "A server that stops closes its seat while a name is held.",
		one(leaveFile, "case !held && (!waits || d.leaving == leaves):", "case !waits || d.leaving == leaves:")},
	{"takes-while-it-hands-over", "A home that hands over takes a release: the heir has the hold, and nobody gives it up.",
		one(homeFile, "	case h.frozen:\n		h.hold(", "	case h.frozen && c.Op != registry.OpRelease:\n		h.hold(")},
	{"heir-closes-early", "A member that has set a home aside closes its seat before it knows whether it is the heir.",
		[]mutation.Edit{
			{File: leaveFile, Old: "	case d.asides.inherits():\n", New: ""},
			{File: hostMember, Old: "&& !h.asides.inherits()", New: ""},
		}},
	{"heir-forgets", "The heir drops what it has set aside when its epoch changes.",
		one("internal/service/host/adopt.go", "		} else if !a.said {", "		} else if !a.said || a.said {")},
	{"heir-enters-nothing-again", "What was taken over is not entered again.",
		one(machinesFile, "= held || in.near != nil, wanted", "= in.state.Held || in.near != nil, wanted")},
	{"handed-over-while-granted", "A home that hands over tells grants that are not in what it has handed over.",
		one("internal/service/host/seat.go", " || s.leaving != stays\n", "\n")},
	{"marker-overtakes", "A marker overtakes a frame that waits for a lane.",
		one(linkFile, "	l.add(ls.scratch)\n", `	l.add(ls.scratch)
	if at := len(l.ends) - 2; f.kind == frameCut && at >= max(l.out, l.skip) {
		before, frame := l.start(at), l.ends[at]-l.start(at)
		l.frames = append(append(append([]byte{}, l.frames[:before]...), l.frames[l.ends[at]:]...), l.frames[before:l.ends[at]]...)
		l.ends[at] = len(l.frames) - frame
	}
`)},
	{"recorded-late", "The state of a member is recorded when all markers have come.",
		[]mutation.Edit{
			{File: cutFile, Old: "	if m.Type == cutMarker && !slices.ContainsFunc(r.open, func(x recording) bool { return x.asker == m.Subject && x.number == m.Seq }) {", New: "	if m.Type == cutMarker {"},
			{File: "algorithm/globalstate/globalstate.go", Old: "	m.recordings = slices.Delete(m.recordings, i, i+1)\n", New: "	m.recordings = slices.Delete(m.recordings, i, i+1)\n	r.state = m.observe()\n"},
		}},
	{"in-flight-not-recorded", "What arrives between the state and the marker of its sender is not recorded.",
		one(receiveFile, "	h.cuts.pass(from, data, in.name)\n", "")},
	{"recorded-once", "The second cut of an epoch has the states of the first.",
		one(cutFile, "	found := 0\n", "	found := 0\n	if r.census.list != nil {\n		return\n	}\n")},
	{"near-outlives-its-lease", "A near hold goes on when the lease of the seat is over.",
		one(nearFile, "ns.held > 0 && ns.now >= ns.seat.until", "ns.held < 0 && ns.now >= ns.seat.until")},
	{"near-handed-over", "A server that stops hands its home over while something is held near.",
		one(leaveFile, "return in.near != nil || in.prefix", "return in.prefix")},
	{"near-not-known-to-the-home", "A near hold ends when a client asks for the name, as the home knows of no holder.",
		one(homeFile, "&& !held && in.near == nil {", "&& !held {")},
	{"near-free-at-the-heir", "An heir forgets that it holds near what those wait for whom it takes over.",
		one(machinesFile, "= held || in.near != nil, wanted", "= held, wanted")},
}

// TestMutants checks that each mistake can be applied. With LONG set, it builds each one,
// requires that random schedules find it, and prints the number of seeds needed. MUTANT
// names one.
func TestMutants(t *testing.T) {
	for i := range mutants {
		m := &mutants[i]
		if _, err := mutation.Overlay("../../..", t.TempDir(), m.name, m.edits); err != nil {
			t.Error(err)
		}
		if name := os.Getenv("MUTANT"); os.Getenv("LONG") != "" && (name == "" || name == m.name) {
			t.Run(m.name, func(t *testing.T) { m.find(t) })
		}
	}
}

// find builds the tests with the mistake and runs them.
func (m *mutant) find(t *testing.T) {
	overlay, err := mutation.Overlay("../../..", t.TempDir(), m.name, m.edits)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "host.test")
	if text, err := exec.Command("go", "test", "-vet=off", "-overlay", overlay, "-c", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	// A mistake may make a host send forever: in 8 GB at most.
	bounded := []string{"-c", `ulimit -v 8000000 && exec "$0" "$@"`, binary, "-test.run=^(TestSchedules|TestDeadlines|TestCuts)$", "-seeds=5000"}
	text, err := exec.Command("sh", bounded...).CombinedOutput()
	if err == nil || !strings.Contains(string(text), "seed ") || strings.Contains(string(text), "out of memory") {
		t.Errorf("%s\nit is not found: %v\n%s", m.why, err, text)
	}
	t.Logf("%s", text)
}
