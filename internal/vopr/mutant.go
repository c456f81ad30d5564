package vopr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is the server with a mistake in it. The mistake is in no program that anyone
// runs: a copy of a source file has it, and the compiler is told to read the copy.
type Mutant struct {
	Name string
	// Why says what is wrong, and what it brings about.
	Why   string
	Edits []Edit
	// Harmless is a mistake that nobody can see by itself.
	Harmless bool
}

// Edit replaces a text, which must stand in the file exactly once.
type Edit struct{ File, Old, New string }

// Mutants are mistakes that a server of this kind invites.
var Mutants = slices.Concat(serverMutants, streamMutants, peeringMutants)

var serverMutants = []Mutant{
	{
		Name: "no-fsync",
		Why:  "No save is synced before what it promises is said: a crash takes back votes and entries that others count on.",
		Edits: []Edit{{
			"service/agreement/ready.go", "MustSync: raw.MustSync,", "MustSync: false,",
		}},
	},
	{
		Name: "renewal-without-round",
		Why:  "A renewal is acknowledged on the word of the leader alone: one that was deposed and does not know it promises time that its successor does not grant.",
		Edits: []Edit{{
			"service/replica/submit.go", "given := r.rounds.ask(asked{renewal: at})", "given := uint64(0)\n\t\tr.confirmed(asked{renewal: at})",
		}},
	},
	{
		Name:  "expiry-without-term",
		Why:   "A verdict of an earlier term counts, and a deposed leader goes on measuring and proposes what it found when it leads again: that ends sessions which were renewed with another leader meanwhile.",
		Edits: append([]Edit{expiryWithoutTerm}, verdictsKept...),
	},
	{
		Name: "no-deduplication",
		Why:  "Answers are not remembered, so that a request which comes again is carried out again: a release is told that there is nothing to release, a refused try may be granted.",
		Edits: []Edit{{
			"service/registry/registry.go", "if i, found := s.find(c.Sequence); found {\n\t\treturn r.recall(&s.answers[i], c), true", "if i, found := s.find(c.Sequence); found && i < 0 {\n\t\treturn r.recall(&s.answers[i], c), true",
		}},
	},
	{
		Name: "stale-snapshot",
		Why:  "A server that is sent a snapshot goes on from its index with the state that it had before, and grants what is held.",
		Edits: []Edit{{
			"service/replica/apply.go", "r.reg, r.applied = restored, snapshot.GetMetadata().GetIndex()", "r.applied = max(r.applied, snapshot.GetMetadata().GetIndex()) + 0*uint64(restored.Counts().Locks)",
		}},
	},
	{
		Name: "grant-over-one-stream",
		Why:  "A grant is told over the stream that its request came over last, which the client may have closed: the mistake that the first hundred seeds found.",
		Edits: []Edit{{
			"service/replica/apply.go", "if to.queued {", "if to.queued && at.sequence == 0 {",
		}},
	},
	{
		Name: "read-without-round",
		Why:  "A leader answers queries on its own word: one that was deposed and does not know it shows holders that have left.",
		Edits: []Edit{{
			"service/replica/replica.go", "r.rounds.ask(asked{read: id})", "r.confirmed(asked{read: id})",
		}},
	},
	{
		Name: "queue-jumped",
		Why:  "Who comes last is served first.",
		Edits: []Edit{{
			"service/registry/resource.go", "at := len(present.queue)\n", "at := len(present.queue)\n\tif c.priority == 0 {\n\t\tat = 0\n\t}\n",
		}},
	},
	{
		Name: "grant-untold",
		Why:  "Who waited is granted and not told: it holds, and nobody gets on.",
		Edits: []Edit{{
			"service/registry/registry.go", "fx.Outcomes = append(fx.Outcomes, Outcome{next.session.id, next.sequence, next.state()})", "_ = fx.Outcomes",
		}},
	},
	{
		Name: "patience-by-wall-clock",
		Why:  "The wall clock of the leader says how long candidates have waited: one that is a year ahead delays those of the leaders after it by a year.",
		Edits: []Edit{{
			"service/replica/apply.go", "Time: r.time(), Wall: wall,", "Time: wall, Wall: wall,",
		}, {
			"service/replica/replica.go", "r.promote()", "r.promote(wall)",
		}, {
			"service/replica/oust.go", "func (r *Replica) promote() {", "func (r *Replica) promote(wall int64) {",
		}, {
			"service/replica/oust.go", "r.reg.Overtaken(r.time())", "r.reg.Overtaken(wall)",
		}},
	},
	{
		Name: "floor-is-fence",
		Why:  "The floor of every grant is its fence: a store that has seen the newest reader refuses the older ones.",
		Edits: []Edit{{
			"service/registry/registry.go", "Floor: c.resource.floor()", "Floor: c.fence",
		}},
	},
	{
		Name: "floor-forgets-revoked",
		Why:  "Holders that are asked to leave do not count for the floor: a store refuses one that has not heard of it yet.",
		Edits: []Edit{{
			"service/registry/resource.go", "func (res *resource) floor() uint64 { return res.holders()[0].fence }",
			"func (res *resource) floor() (fence uint64) {\n\tfor _, h := range res.holders() {\n\t\tif fence = h.fence; !h.revoked {\n\t\t\tbreak\n\t\t}\n\t}\n\treturn fence\n}",
		}},
	},
	{
		Name: "hung-leader-stays",
		Why:  "A leader whose disk hangs sends heartbeats, applies nothing and stays: nobody is served, although a majority of the disks works.",
		Edits: []Edit{{
			"service/replica/stall.go", "\t\tr.yield()\n", "\t\tr.yielded = 0\n",
		}},
	},
	{
		Name: "end-drops-at-once",
		Why:  "An operator who ends a session takes its holds away at once: the next one enters while the holder does not know.",
		Edits: []Edit{{
			"service/registry/revoke.go", "r.ask(res, slices.Index(res.holders(), held), c.Value, c.Origin.Actor, fx)\n\t}", "r.drop(held, Stale, Dropped)\n\t\tr.settle(res, fx)\n\t}",
		}},
	},
	{
		Name: "raise-without-learners",
		Why:  "The level rises when all voters read the next one: a learner that does not stops, and never follows again.",
		Edits: []Edit{{
			"service/replica/level.go", "if m.Standing != registry.Removed && !m.coming() {", "if m.Voter {",
		}},
	},
	{
		Name: "raise-without-the-absent",
		Why:  "The level rises while a server is down: its operator may have gone back to the release before, which then does not start.",
		Edits: []Edit{{
			"service/replica/level.go", "case said.Max == 0 || !r.live(m.ID):", "case said.Max == 0:",
		}},
	},
	{
		Name: "half-a-ttl-after-election",
		Why:  "A new leader gives sessions half of their TTL: it ends some that its predecessor renewed.",
		Edits: []Edit{{
			"service/replica/lease.go", "deadline: now + s.TTL, renewals: s.Renewals, check: now + soon",
			"deadline: now + s.TTL/2, renewals: s.Renewals, check: now + soon",
		}},
	},
	{
		Name: "half-a-ttl",
		Why:  "A renewal through the log extends the session by half of its TTL only.",
		Edits: []Edit{{
			"service/replica/lease.go", "deadline: now + s.TTL, renewals: s.Renewals, check: now + s.TTL/2",
			"deadline: now + s.TTL/2, renewals: s.Renewals, check: now + s.TTL/2",
		}},
	},
	{
		Name: "silent-renewed-by-round",
		Why:  "A session that the log has down as silent is renewed by a round, and the next leader does not know it.",
		Edits: []Edit{{
			"service/replica/lease.go", "if s == nil || s.silent || s.expiring {",
			"if s == nil || s.expiring {",
		}},
	},
	{
		Name: "silent-for-good",
		Why:  "A session that was silent stays so in the log after its renewal: the next leader gives it what it had left then.",
		Edits: []Edit{{
			"service/registry/session.go", "s.silent, s.remaining = false, 0",
			"_ = s.silent",
		}},
	},
	{
		Name: "limit-plus-one",
		Why:  "A semaphore has one place more than its limit.",
		Edits: []Edit{{
			"service/registry/resource.go", "len(holders) < int(res.limit)",
			"len(holders) <= int(res.limit)",
		}},
	},
	{
		Name: "reader-beside-writer",
		Why:  "A shared hold is granted beside an exclusive one.",
		Edits: []Edit{{
			"service/registry/resource.go", "return holders[0].shared && len(holders) < MaxLimit",
			"return len(holders) < MaxLimit",
		}},
	},
	{
		Name: "writer-overtaken",
		Why:  "A reader that comes while others read is granted although a writer waits.",
		Edits: []Edit{{
			"service/registry/resource.go", "return len(res.queue()) == 0 && res.fits(t)",
			"return (len(res.queue()) == 0 || t.shared) && res.fits(t)",
		}},
	},
	{
		Name: "fence-repeated",
		Why:  "All grants have the same fence.",
		Edits: []Edit{{
			"service/registry/registry.go", "if r.counter++; r.counter == counterTurn {",
			"if r.counter = max(r.counter, 1); r.counter == counterTurn {",
		}},
	},
	{
		Name: "fence-not-in-snapshot",
		Why:  "A snapshot does not have the newest fence: fences begin again on a server that is sent one.",
		Edits: []Edit{{
			"service/registry/snapshot.go", "b = wire.AppendUint(b, v.counter)",
			"b = wire.AppendUint(b, 0)",
		}},
	},
	{
		Name: "answers-not-in-snapshot",
		Why:  "A snapshot does not have the answers that clients may still ask for: requests are carried out twice.",
		Edits: []Edit{{
			"service/registry/snapshot.go", "s.answers = append(s.answers, a)\n\t\ts.addAnswer(&a)",
			"_ = a",
		}},
	},
	{
		Name: "answer-forgotten-too-soon",
		Why:  "The answer is forgotten that the client awaits: if it asks again, the request is carried out twice.",
		Edits: []Edit{{
			"service/registry/session.go", "i, _ := s.find(low)\n",
			"i, _ := s.find(low + 1)\n",
		}},
	},
	{
		Name: "withdrawal-forgotten",
		Why:  "A request that is withdrawn before it arrives is carried out when it does: nobody knows of the hold.",
		Edits: []Edit{{
			"service/registry/registry.go", "if _, found := s.find(hold); !found {",
			"if _, found := s.find(hold); !found && hold == 0 {",
		}},
	},
	{
		Name: "expiry-wakes-nobody",
		Why:  "When a session expires, those who wait behind its holds are not granted.",
		Edits: []Edit{{
			"service/registry/end.go", "res.sweep()\n\t\tr.settle(res, fx)",
			"res.sweep()\n\t\tif len(res.queue()) == 0 {\n\t\t\tr.settle(res, fx)\n\t\t}",
		}},
	},
	{
		Name: "release-wakes-nobody",
		Why:  "When a hold is released, those who wait are not granted.",
		Edits: []Edit{{
			"service/registry/registry.go", "r.settle(c.resource, fx)\n\tr.leave(s, fx)",
			"if len(c.resource.queue()) == 0 {\n\t\tr.settle(c.resource, fx)\n\t}\n\tr.leave(s, fx)",
		}},
	},
	{
		Name: "holds-outlive-sessions",
		Why:  "A session ends and its holds stay.",
		Edits: []Edit{{
			"service/registry/end.go", "claims = s.sortedClaims(claims[:0])\n",
			"claims = s.sortedClaims(claims[:0])[:0]\n",
		}},
	},
	{
		Name: "revoked-and-dropped",
		Why:  "A hold that is revoked is dropped at the next tick: its holder may not know yet.",
		Edits: []Edit{{
			"service/replica/oust.go", "case !known:\n\t\t\tr.ousted[id] = now + ttls[i]",
			"case !known:\n\t\t\tr.ousted[id] = now",
		}},
	},
	{
		Name: "revoked-and-kept",
		Why:  "A hold that is revoked stays for as long as its holder likes.",
		Edits: []Edit{{
			"service/replica/oust.go", "case until <= now:",
			"case until < 0:",
		}},
	},
	{
		Name: "ended-and-granted",
		Why:  "A session that an operator is ending acquires more.",
		Edits: []Edit{{
			"service/registry/registry.go", "if s.leaving {\n\t\t\treturn Result{Code: Revoked",
			"if s.leaving && s.low == 0 {\n\t\t\treturn Result{Code: Revoked",
		}},
	},
	{
		Name: "routes-outlive-leadership",
		Why:  "A leader that is deposed keeps the list of requests on their way: when it leads again, it takes those that are sent again for old ones and does not answer.",
		Edits: []Edit{{
			"service/replica/replica.go", "clear(r.routes)\n",
			"",
		}},
	},
	{
		Name: "deadline-from-the-answer",
		Why:  "The client counts its deadline from the answer to a renewal, not from its transmission: it believes for longer than the servers wait.",
		Edits: []Edit{{
			"internal/line/reply.go", "until := c.first + rep.GetRemainingNs() - Margin(l.ttl)", "until := l.now + rep.GetRemainingNs() - Margin(l.ttl)",
		}},
	},
	{
		Name: "deadline-without-margin",
		Why:  "The client believes as long as the servers wait: its clock may be slower than theirs.",
		Edits: []Edit{{
			"internal/line/reply.go", "until := c.first + rep.GetRemainingNs() - Margin(l.ttl)", "until := c.first + rep.GetRemainingNs()",
		}},
	},
	{
		Name: "open-sent-twice",
		Why:  "The client asks for a session over two streams under one secret: the second request revives the session after it has ended.",
		Edits: []Edit{{
			"internal/line/stream.go", "if !s.opens() {\n\t\t\tst.queue", "if s != nil {\n\t\t\tst.queue",
		}},
	},
	{
		Name: "numbered-anew",
		Why:  "The client gives a request a new number when it sends it again: it is carried out twice.",
		Edits: []Edit{{
			"internal/line/session.go", "\tc.last, s.sent = s.line.now, true\n", "\tif c.last != 0 && c.acquires() && c.sequence != 0 && !c.answered {\n\t\tdelete(s.pending, c.sequence)\n\t\tc.sequence = s.next\n\t\ts.next++\n\t\ts.pending[c.sequence] = c\n\t}\n\tc.last, s.sent = s.line.now, true\n",
		}},
	},
	{
		Name: "grant-of-a-caller-that-left",
		Why:  "The client keeps a grant whose caller has gone: nobody releases it.",
		Edits: []Edit{{
			"internal/line/reply.go", "\tif c.withdrawn {\n\t\ts.giveBack(c.sequence)\n\t\treturn\n\t}\n", "\tif c.withdrawn {\n\t\treturn\n\t}\n",
		}},
	},
	{
		Name: "unanswered-and-patient",
		Why:  "The client tries no other server while the one in use leaves requests unanswered.",
		Edits: []Edit{{
			"internal/line/watch.go", "last != 0 && !elsewhere && l.now-last", "last == 0 && !elsewhere && l.now-last",
		}},
	},
	{
		Name: "no-relay",
		Why:  "A client that does not reach the leader never asks another server to relay.",
		Edits: []Edit{{
			"internal/line/search.go", "if !st.relayed && (late || leader == l.barred) {", "if st.relayed && (late || leader == l.barred) {",
		}},
	},
	{
		Name: "revocation-as-a-grant",
		Why:  "The client takes any late answer that has a fence for a grant, and gives it back: also the answer to a revocation.",
		Edits: []Edit{{
			"internal/line/reply.go", "case c == nil: // a duplicate\n", "case c == nil && rep.GetFence() != 0 && s.grants[rep.GetSequence()] == nil && !s.gone:\n\t\ts.giveBack(rep.GetSequence())\n\tcase c == nil: // a duplicate\n",
		}},
	},
	{
		Name: "nobody-owns",
		Why:  "The owner of a session is not the caller that was proven.",
		Edits: []Edit{{
			"service/convert/convert.go", "registry.OpOpen, op.Open.GetTtlNs(), origin.Actor", "registry.OpOpen, op.Open.GetTtlNs(), op.Open.GetProgram()",
		}},
	},
	{
		Name: "founded-by-majority",
		Why:  "A majority of the founders is enough to found a cluster. The others begin blank, and the loss of one disk leaves no majority.",
		Edits: []Edit{{
			"service/founding/founding.go", "old := s.Restored && record", "if s.ID == s.Founders[0] && 2*len(missing) < len(s.Founders) {\n\t\tmissing = nil\n\t}\n\told := s.Restored && record",
		}, {
			"service/founding/founding.go", "return wait(missing, differ, Decision{Step: Found})", "if 2*len(missing) < len(s.Founders) {\n\t\tmissing = nil\n\t}\n\treturn wait(missing, differ, Decision{Step: Found})",
		}, {
			"service/founding/founding.go", "first[i] = Founder{id, answers[id].UID}", "first[i] = Founder{id, max(answers[id].UID, 1)}",
		}},
	},
	{
		Name: "not-ready-is-new",
		Why:  "A server that has not read its disk counts as new: one that lost its data makes a second founding record, and waits forever.",
		Edits: []Edit{{
			"service/founding/founding.go", "case a.Phase == New:\n", "case a.Phase == New || a.Phase == NotReady && a.UID != 0:\n",
		}},
	},
	{
		Name: "emptied-and-trusted",
		Why:  "A server that lost its data keeps its vote: it and one that lags elect a leader without what was acknowledged.",
		Edits: []Edit{{
			"service/agreement/core.go", "if c.blank && !c.takenWhenBlank(m) {", "if c.blank && c.term == 0 && !c.takenWhenBlank(m) && m.GetTerm() == 0 {",
		}, {
			"service/replica/admit.go", "case (voter || learner) && recorded && !same:\n\t\treturn r.change(raftpb.ConfChangeRemoveNode, peer)\n\tcase", "case",
		}},
	},
	{
		Name: "blank-counts",
		Why:  "A voter that lost its data answers heartbeats: a leader stays, and confirms reads and renewals, with nobody but servers that know nothing.",
		Edits: []Edit{{
			"service/agreement/receive.go", "return m.GetReject()", "return m.GetReject() || m.GetType() == raftpb.MsgHeartbeat",
		}},
	},
	{
		Name: "record-not-saved-first",
		Why:  "A founder goes on, and tells others of its record, before that is on its disk: after a crash it does not know of a cluster that was founded on its word.",
		Edits: []Edit{{
			"service/founding/machine.go", "m.writing = a.Record", "m.writing, m.disk.Record = a.Record, a.Record",
		}, {
			"service/founding/machine.go", "case !m.loaded || m.writing != nil:", "case !m.loaded:",
		}},
	},
	// What each half of expiry-without-term is worth alone: nothing. A leader proposes
	// a verdict in the term in which it passed it, or forgets it when it is deposed,
	// and raft keeps the term of an entry whoever commits it. So the term that a
	// verdict names is always that of its entry, unless it outlives its leader. (A server
	// that only stands for election is in its new term already, so these mutants pass
	// verdicts as followers only.)
	{Name: "expiry-without-term-alone", Why: "Verdicts are forgotten with the leadership, so that the term is always right.", Edits: []Edit{expiryWithoutTerm}, Harmless: true},
	{Name: "verdicts-kept-alone", Why: "The term in the verdict makes it void.", Edits: verdictsKept, Harmless: true},
}

var (
	expiryWithoutTerm = Edit{
		"service/registry/registry.go", "case OpExpire:\n\t\tif c.Term == term {", "case OpExpire:\n\t\tif c.Term <= term {",
	}
	verdictsKept = []Edit{{
		"service/replica/replica.go", "r.verdicts, r.inflight, r.proposed = nil, 0, 0\n\tr.leases = newLeases()", "r.inflight, r.proposed = 0, 0",
	}, {
		"service/replica/replica.go", "if !r.ready {\n\t\treturn\n\t}\n\texpired, silent", "if !r.ready {\n\t\tif r.role == agreement.Follower {\n\t\t\tlate, _ := r.leases.due(r.leaseClock())\n\t\t\tr.judge(registry.OpExpire, late)\n\t\t}\n\t\treturn\n\t}\n\texpired, silent",
	}, {
		"service/replica/apply.go", "r.ready = true\n\tnow :=", "r.ready, r.leases = true, newLeases()\n\tnow :=",
	}}
)

// Plan returns the file, in a folder of recorded plans, that finds the mutant.
func (m *Mutant) Plan(folder string) string { return filepath.Join(folder, m.Name+".json") }

// Overlay writes the files of a mutant of the repository at root into a folder, and
// returns the file that `go build -overlay` takes.
func (m *Mutant) Overlay(root, folder string) (string, error) {
	replace := make(map[string]string)
	for i, e := range m.Edits {
		path := filepath.Join(root, e.File)
		from := path
		if copied, again := replace[path]; again {
			from = copied
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", fmt.Errorf("vopr: %w", err)
		}
		if n := bytes.Count(text, []byte(e.Old)); n != 1 {
			return "", fmt.Errorf("vopr: mutant %s: %q stands %d times in %s, not once: bring the mutant up to date", m.Name, e.Old, n, e.File)
		}
		copied := filepath.Join(folder, fmt.Sprintf("%s-%d.go", m.Name, i))
		if err := os.WriteFile(copied, bytes.Replace(text, []byte(e.Old), []byte(e.New), 1), 0o600); err != nil {
			return "", fmt.Errorf("vopr: %w", err)
		}
		replace[path] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("vopr: %w", err)
	}
	file := filepath.Join(folder, m.Name+".json")
	return file, os.WriteFile(file, list, 0o600)
}

// Build builds the command run with the mistake, in a folder, and returns its path.
func (m *Mutant) Build(folder string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("vopr: mutants are made of the sources: run it in the repository: %w", err)
	}
	overlay, err := m.Overlay(strings.TrimSpace(string(out)), folder)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, m.Name+".exe")
	text, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary, module+"/internal/vopr/run").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("vopr: mutant %s: %w\n%s", m.Name, err, text)
	}
	return binary, nil
}

const module = "github.com/conclave-io/conclave"
