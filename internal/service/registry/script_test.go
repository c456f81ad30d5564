package registry

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scripts in testdata. A block "run" applies one command
// per line, each as a log entry of its own; "batch" puts all its lines into one
// entry. Options of both: term=N (1 unless told otherwise). The lines are those
// of parseCommand, and the queries of (*script).query.
//
// After every entry the state must pass Check and survive its own encoding:
// the script continues with the decoded copy.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &script{t: t, reg: New()}
		datadriven.RunTest(t, path, s.block)
	})
}

type script struct {
	t     *testing.T
	reg   *Registry
	clock int64 // ns, the replicated time of the next entry
	wall  int64 // and its wall clock
	out   strings.Builder
}

func (s *script) block(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.out.Reset()
	term := uint64(1)
	d.MaybeScanArgs(t, "term", &term)
	lines := strings.Split(d.Input, "\n")
	switch d.Cmd {
	case "run":
		for _, line := range lines {
			fmt.Fprintln(&s.out, line)
			s.line(term, line)
		}
	case "batch":
		var commands []Command
		for _, line := range lines {
			commands = append(commands, s.parse(line))
		}
		s.apply(term, commands...)
	default:
		t.Fatalf("unknown block %q: it must be run or batch", d.Cmd)
	}
	return s.out.String()
}

func (s *script) line(term uint64, line string) {
	w := parseWords(line)
	if !s.query(&w) {
		s.apply(term, s.parse(line))
		return
	}
	if w.err != nil {
		s.t.Fatalf("%q: %v", line, w.err)
	}
}

func (s *script) parse(line string) Command {
	c, err := parseCommand(s.reg, parseWords(line))
	if err != nil {
		s.t.Fatalf("%q: %v", line, err)
	}
	return c
}

// apply encodes and decodes one log entry, applies it as a server does, and prints the
// effects.
func (s *script) apply(term uint64, commands ...Command) {
	written := Batch{Time: s.clock, Wall: s.wall, Commands: commands}
	level, _ := s.reg.Level()
	batch, err := DecodeBatch(written.Append(nil, level))
	if err != nil {
		s.t.Fatal(err)
	}
	var fx Effects
	s.reg.Apply(term, &batch, &fx)
	printEffects(&s.out, &fx)
	s.reg = throughSnapshot(s.t, s.reg)
}

// throughSnapshot checks the state and returns its copy, made from its
// encoding.
func throughSnapshot(t failer, r *Registry) *Registry {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Fatalf("an invariant is broken: %v", err)
	}
	encoded := r.Freeze().Encode()
	decoded, err := Decode(encoded)
	if err != nil {
		t.Fatalf("what was encoded cannot be decoded: %v", err)
	}
	if !bytes.Equal(encoded, decoded.Freeze().Encode()) {
		t.Fatalf("the state changed on its way through a snapshot")
	}
	if r.Size() != decoded.Size() || r.Digest() != decoded.Digest() {
		t.Fatalf("size %d and digest %x are kept, a recount says %d and %x", r.Size(), r.Digest(), decoded.Size(), decoded.Digest())
	}
	return decoded
}

// failer is what *testing.T, *testing.F and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// query answers the lines that only look, or set the stage:
//
//	clock 5s                      both clocks of the entries that follow
//	wall 5s                       their wall clock alone
//	counter back=2                as if all but 2 fences of the epoch were given
//	locks, elections, sessions    what is there
//	leader NAME, counts, now
//	past NAME [class=election]    how its last holds ended
//	overtaken 5s                  elections with a better candidate then
//	answers a                     low and the sequences of remembered answers
//	waits                         who waits and keeps something
//	settings                      and the last backup
//	live                          the view, the seats and the guards
//	flood a 1..1030 low=1         that many releases, answers summed up
func (s *script) query(w *words) bool {
	switch w.at(0) {
	case "clock":
		s.clock, s.wall = w.duration(1), w.duration(1)
	case "wall":
		s.wall = w.duration(1)
	case "counter":
		s.reg.counter = counterTurn - 1 - w.number("back", 0)
	case "locks":
		s.list(Lock)
	case "elections":
		s.list(Election)
	case "sessions":
		s.reg.Each(func(session Session) { fmt.Fprintf(&s.out, "  %s\n", sessionText(session)) })
	case "leader":
		s.leader(w.at(1))
	case "past":
		s.past(w)
	case "overtaken":
		fmt.Fprintf(&s.out, "  %v\n", s.reg.Overtaken(w.duration(1)))
	case "counts":
		c := s.reg.Counts()
		fmt.Fprintf(&s.out, "  sessions=%d locks=%d elections=%d waiters=%d fence=%s\n", c.Sessions, c.Locks, c.Elections, c.Waiters, fenceText(c.Fence))
	case "now":
		fmt.Fprintf(&s.out, "  %s, shown %s\n", durationText(s.reg.now), durationText(s.reg.wall))
	case "waits":
		s.waits()
	case "settings":
		fmt.Fprintf(&s.out, "  %s last backup %s\n", settingsText(s.reg.Settings()), durationText(s.reg.LastBackup()))
	case "live":
		s.live()
	case "answers":
		s.answers(sessionNamed(w.at(1)))
	case "flood":
		s.flood(w)
	default:
		return false
	}
	return true
}

func (s *script) list(class Class) {
	resources, more := s.reg.Freeze().List(class, "", "", 100, 100)
	if more {
		s.t.Fatal("more than 100 resources")
	}
	for _, res := range resources {
		fmt.Fprintf(&s.out, "  %s\n", resourceText(res))
	}
}

func (s *script) live() {
	l := s.reg.Guarded()
	fmt.Fprintf(&s.out, "  epoch %d of %d:%s; seats:%s; coordinator %d%s\n", l.Epoch, s.reg.Epoch(), seatsText(l.Members), seatsText(l.Seats), l.Coordinator, watchText(l.Watch))
	for i := range l.Guards {
		fmt.Fprintf(&s.out, "  %s\n", guardText(&l.Guards[i]))
	}
}

func (s *script) leader(name string) {
	h, elected := s.reg.Freeze().Leader(name)
	if !elected {
		fmt.Fprintf(&s.out, "  nobody\n")
		return
	}
	fmt.Fprintf(&s.out, "  %s\n", holderText(h))
}

func (s *script) past(w *words) {
	class := Lock
	if w.options["class"] == "election" {
		class = Election
	}
	_, _, past := s.reg.Freeze().Explain(class, w.at(1), 0)
	for _, e := range past {
		how := [...]string{"", "released", "closed", "expired", "dropped"}[e.How]
		fmt.Fprintf(&s.out, "  %s %s-%s %s %s on %s, pid %d %s\n", fenceText(e.Fence), durationText(e.Since), durationText(e.Until), how, e.Program, e.Host, e.PID, e.Reason)
	}
	if len(past) == 0 {
		fmt.Fprintf(&s.out, "  nothing\n")
	}
}

func (s *script) answers(id SessionID) {
	session := s.reg.sessions[id]
	if session == nil {
		fmt.Fprintf(&s.out, "  no session\n")
		return
	}
	fmt.Fprintf(&s.out, "  low=%d", session.low)
	for _, a := range session.answers {
		fmt.Fprintf(&s.out, " %d:%s", a.sequence, codeText(a.code))
	}
	fmt.Fprintln(&s.out)
}

// flood has a session release what it does not hold, once for each sequence.
func (s *script) flood(w *words) {
	var first, last uint64
	if _, err := fmt.Sscanf(w.at(2), "%d..%d", &first, &last); err != nil {
		s.t.Fatalf("flood %q: %v", w.at(2), err)
	}
	var batch Batch
	for sequence := first; sequence <= last; sequence++ {
		batch.Commands = append(batch.Commands, Command{
			Op: OpRelease, Session: sessionNamed(w.at(1)), Sequence: sequence, Low: w.number("low", 0), Hold: 1 << 40,
		})
	}
	var fx Effects
	s.reg.Apply(1, &batch, &fx)
	tally := map[Code]int{}
	for _, outcome := range fx.Outcomes {
		tally[outcome.Result.Code]++
	}
	var codes []Code
	for code := range tally {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		fmt.Fprintf(&s.out, "  %d %s\n", tally[code], codeText(code))
	}
	s.reg = throughSnapshot(s.t, s.reg)
}
