package replica

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// TestScripts runs the scripts in testdata/script. A script has a cluster in virtual time, as
// cluster_test.go has it, or one server whose outputs are carried out by hand: see
// (*script).block and (*script).step.
//
// Scripts print no times and no fences, so that they do not depend on what a seed draws.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t, s.d = t, d
			s.out.Reset()
			s.block()
			if s.out.Len() == 0 {
				return "ok\n"
			}
			return s.out.String()
		})
	})
}

type script struct {
	t   *testing.T
	d   *datadriven.TestData
	c   *cluster
	out strings.Builder

	sequence map[byte]uint64              // the last of each session
	asked    map[asking]string            // the line of each request
	holds    map[string]uint64            // the request for a name, by session and name
	last     map[byte]registry.Command    // of each session
	ended    map[registry.SessionID]int64 // sessions whose end was printed

	step // of a server that is stepped by hand
}

type asking struct {
	session  registry.SessionID
	sequence uint64
}

func (s *script) print(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// block carries out one block of a script:
//
//	cluster servers=N [snapshot=BYTES] [limit=BYTES]   start a cluster, and wait until it has a leader
//	request [to=N]       submit each line, and run until its answer: see (*script).command
//	submit [to=N]        submit each line, and run for 50 ms
//	run D                let time pass, and print late answers and the ends of sessions
//	lead N               make a server the leader
//	crash, start, pause, resume, cut, join, hang, wake N...   do that to servers, or to all
//	change KIND N        promote or remove a server
//	status               print the roles of the servers and the locks
//	same                 require the same state on all servers
//	single, and all of (*script).stepBlock             one server, stepped by hand
func (s *script) block() {
	switch s.d.Cmd {
	case "cluster":
		s.start()
	case "request", "submit":
		s.request()
	case "run":
		d, err := time.ParseDuration(s.word(0))
		s.must(err)
		s.c.run(int64(d))
		s.printEnds()
	case "lead":
		_, err := s.c.change(Change{Kind: Lead, ID: s.number(0)})
		s.must(err)
		s.c.run(100 * ms)
	case "change":
		_, err := s.c.change(Change{Kind: map[string]Kind{"promote": Promote, "remove": Remove}[s.word(0)], ID: s.number(1)})
		if err != nil {
			s.print("refused: %v", err)
		}
	case "crash", "start", "pause", "resume", "cut", "join", "hang", "wake":
		s.disturb()
	case "status":
		s.status()
	case "same":
		s.c.same()
	default:
		s.stepBlock()
	}
}

func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", s.d.Pos, err)
	}
}

func (s *script) word(i int) string {
	if i >= len(s.d.CmdArgs) {
		s.t.Fatalf("%s: word %d is missing", s.d.Pos, i+1)
	}
	return s.d.CmdArgs[i].Key
}

func (s *script) number(i int) (n uint64) {
	_, err := fmt.Sscan(s.word(i), &n)
	s.must(err)
	return n
}

func (s *script) reset(servers int) {
	s.c = newCluster(s.t, servers, 1)
	s.sequence, s.asked, s.holds = make(map[byte]uint64), make(map[asking]string), make(map[string]uint64)
	s.ended, s.last = make(map[registry.SessionID]int64), make(map[byte]registry.Command)
}

func (s *script) start() {
	var servers int
	s.d.ScanArgs(s.t, "servers", &servers)
	s.reset(servers)
	s.d.MaybeScanArgs(s.t, "snapshot", &s.c.cfg.SnapshotBytes)
	s.d.MaybeScanArgs(s.t, "limit", &s.c.cfg.StateLimit)
	if s.c.cfg.SnapshotBytes > 0 {
		s.c.cfg.TailEntries = 1
	}
	s.c.onReply = s.printReply
	s.c.start()
	s.c.await()
	s.c.run(2000 * ms) // all servers are on record
}

// disturb does something to the servers that the block names, or to all.
func (s *script) disturb() {
	for _, server := range s.c.each() {
		if !slices.ContainsFunc(s.d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == "all" || a.Key == fmt.Sprint(server.id) }) {
			continue
		}
		switch s.d.Cmd {
		case "crash":
			s.c.crash(server)
		case "start":
			s.c.restart(server)
		case "pause", "resume":
			server.paused = s.d.Cmd == "pause"
		case "cut", "join":
			server.cut = s.d.Cmd == "cut"
		case "hang", "wake":
			server.hung = s.d.Cmd == "hang"
		}
	}
}

// request submits lines to the leader or to a server.
func (s *script) request() {
	var to uint64
	s.d.MaybeScanArgs(s.t, "to", &to)
	for line := range strings.Lines(s.d.Input) {
		line = strings.TrimSpace(line)
		server := s.c.servers[to]
		if server == nil {
			server = s.c.await()
		}
		command := s.command(line)
		at := asking{command.Session, command.Sequence}
		s.asked[at] = line
		server.replica.Submit(s.c.now, 1, []registry.Command{command})
		if s.d.Cmd == "submit" {
			s.c.run(50 * ms)
		} else {
			s.c.answerTo(at.session, at.sequence)
		}
	}
	s.printEnds()
}

// command parses the request of a session, which has a letter:
//
//	a open TTL
//	a acquire NAME, a try NAME
//	a release NAME, a cancel NAME      what it asked for last under that name
//	a renew, a close
//	a again                            its last request once more
func (s *script) command(line string) registry.Command {
	words := strings.Fields(line)
	if len(words) < 2 {
		s.t.Fatalf("%s: %q: must be a session and a request", s.d.Pos, line)
	}
	session := words[0][0]
	if words[1] == "again" {
		return s.last[session]
	}
	s.sequence[session]++
	c := registry.Command{Session: registry.SessionID{15: session}, Sequence: s.sequence[session]}
	of := ""
	if len(words) > 2 {
		of = words[2]
	}
	held := words[0] + " " + of
	switch words[1] {
	case "open":
		ttl, err := time.ParseDuration(of)
		s.must(err)
		c.Op, c.TTL = registry.OpOpen, int64(ttl)
	case "acquire", "try":
		c.Op, c.Name, c.Try = registry.OpAcquire, of, words[1] == "try"
		s.holds[held] = c.Sequence
	case "release":
		c.Op, c.Hold = registry.OpRelease, s.holds[held]
	case "cancel":
		c.Op, c.Hold = registry.OpCancel, s.holds[held]
	case "renew":
		c.Op = registry.OpRenew
	case "close":
		c.Op = registry.OpClose
	default:
		s.t.Fatalf("%s: %q: unknown request", s.d.Pos, line)
	}
	s.last[session] = c
	return c
}

// codes has the names of the answers in scripts.
var codes = map[registry.Code]string{
	registry.OK: "OK", registry.Queued: "QUEUED", registry.Held: "HELD", registry.NotHeld: "NOT_HELD", registry.SessionGone: "SESSION_GONE",
	registry.Invalid: "INVALID", registry.Exhausted: "EXHAUSTED", registry.NotLeader: "NOT_LEADER", registry.Stale: "STALE",
	registry.Cancelled: "CANCELLED", registry.StateLimit: "STATE_LIMIT",
}

func (s *script) printReply(r received) {
	line, ours := s.asked[asking{r.Session, r.Sequence}]
	if !ours {
		return
	}
	code := cmp.Or(codes[r.Result.Code], fmt.Sprint(r.Result.Code))
	if r.Result.Message != "" {
		code += ": " + r.Result.Message
	}
	s.print("%s: %s", line, code)
}

// printEnds prints the sessions that have ended.
func (s *script) printEnds() {
	for _, id := range slices.SortedFunc(maps.Keys(s.c.ended), registry.SessionID.Compare) {
		if _, printed := s.ended[id]; !printed {
			s.ended[id] = s.c.ended[id]
			s.print("session %c has ended", id[15])
		}
	}
}

func (s *script) status() {
	for _, server := range s.c.each() {
		switch {
		case server.removed:
			s.print("server %d: removed", server.id)
		case server.replica == nil:
			s.print("server %d: down", server.id)
		case server.replica.Leading():
			s.print("server %d: leader", server.id)
		default:
			s.print("server %d: follower", server.id)
		}
	}
	if leader := s.c.leader(); leader != nil {
		locks, _ := leader.replica.Registry().Freeze().List(registry.Lock, "", "", 100, 100)
		for _, l := range locks {
			s.print("%s: held by %s, %d wait", l.Name, sessionsOf(l.Holders), l.QueueLength)
		}
	}
}

func sessionsOf(holders []registry.Holder) string {
	var all []string
	for i := range holders {
		all = append(all, string(holders[i].Session[15:]))
	}
	return strings.Join(all, " ")
}

// step is one server whose outputs are carried out by hand.
type step struct {
	server   *server
	saves    []*agreement.Save
	encode   Encode
	snapshot bool
}

// stepBlock carries out one block for a server that is stepped by hand:
//
//	single [snapshot=BYTES]  start the only server of a cluster
//	elect              tick and carry out everything until the server leads
//	submit-to-core     submit each line
//	output             take the output, and print it
//	saved              the first save of the outputs is durable
//	encoded, stored    the state is encoded; the snapshot is durable
//	restart            a crash: what is not durable is lost
func (s *script) stepBlock() {
	switch s.d.Cmd {
	case "single":
		s.reset(1)
		s.d.MaybeScanArgs(s.t, "snapshot", &s.c.cfg.SnapshotBytes)
		s.step = step{server: s.c.servers[1]}
		s.c.restart(s.server)
	case "elect":
		s.elect()
	case "submit-to-core":
		for line := range strings.Lines(s.d.Input) {
			line = strings.TrimSpace(line)
			command := s.command(line)
			s.asked[asking{command.Session, command.Sequence}] = line
			s.server.replica.Submit(s.c.now, 1, []registry.Command{command})
		}
	case "output":
		s.output()
	case "saved":
		if len(s.saves) == 0 {
			s.t.Fatalf("%s: no save is under way", s.d.Pos)
		}
		s.save()
	case "encoded":
		s.server.replica.Encoded(s.encode.Index, s.encode.Version.Encode())
	case "stored":
		s.server.replica.SnapshotStored()
	case "restart":
		s.saves = nil
		s.c.restart(s.server)
	default:
		s.t.Fatalf("%s: %s: unknown block", s.d.Pos, s.d.Cmd)
	}
}

func (s *script) save() {
	save := s.saves[0]
	s.saves = s.saves[1:]
	store(&s.server.durable, save.HardState, save.Entries, save.Snapshot)
	s.server.replica.Saved(s.c.now, save)
}

// elect makes the only server the leader, without a print.
func (s *script) elect() {
	for !s.server.replica.ready || len(s.saves) > 0 {
		s.c.now += 10 * ms
		s.server.replica.Tick(s.c.now)
		s.output()
		for len(s.saves) > 0 {
			s.save()
			s.output()
		}
	}
	s.out.Reset()
}

// output prints what the host has to do. Saves of the commit index alone are made at once.
func (s *script) output() {
	out := s.server.replica.Output(s.c.now)
	s.must(out.Err)
	for _, save := range out.Saves {
		if !save.MustSync && len(s.saves) == 0 {
			store(&s.server.durable, save.HardState, save.Entries, save.Snapshot)
			s.server.replica.Saved(s.c.now, save)
			continue
		}
		s.saves = append(s.saves, save)
		s.print("save: %d entries, must be durable: %t", len(save.Entries), save.MustSync)
	}
	for _, r := range out.Replies {
		s.printReply(received{Reply: r})
	}
	if out.Encode.Version != nil {
		s.encode = out.Encode
		s.print("encode the state")
	}
	if out.Snapshot != nil {
		s.server.durable.Snapshot = out.Snapshot
		s.print("store a snapshot")
	}
	s.server.replica.Clear()
}
