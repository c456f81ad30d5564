package registry

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/internal/service/version"
)

// modelChecks is how many walks rapid takes unless told otherwise.
const modelChecks = 100

var steps = flag.Int("steps", 50_000, "steps of TestModel in all, at rapid's usual 100 checks")

// TestModel applies the commands that clients and leaders may send to the registry and to
// its naive model, in any order and more than once. Some difficult states are rare. It
// repeats the walk, at most five times, until it has visited all of them.
func TestModel(t *testing.T) {
	coverage := map[string]int{}
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			w := &walk{t: t, reg: atLevel(version.Linger), term: 1, seen: coverage}
			w.naive.guarded = naiveGuarded{guards: map[string]*naiveGuard{}, voters: map[uint64]bool{}, quiet: map[string]bool{}}
			for range max(1, *steps/modelChecks) {
				w.step()
			}
		})
		if t.Failed() || *steps < 50_000 || len(missed(coverage)) == 0 {
			break
		}
	}
	if places := missed(coverage); !t.Failed() && *steps >= 50_000 && len(places) > 0 {
		t.Errorf("no walk came to %q: it tests less than it seems to", places)
	}
	t.Logf("%v", coverage)
}

// missed returns the difficult states that no walk visited.
func missed(seen map[string]int) (places []string) {
	for _, what := range []string{
		"OK", "QUEUED", "HELD", "NOT_HELD", "SESSION_GONE", "INVALID", "STALE", "CANCELLED",
		"granted from the queue", "granted on expiry", "sent again", "cancelled too late", "cancelled in advance",
		"election changed", "several expired", "void verdict", "renewed from silence",
		"REVOKED", "NOT_FOUND", "DEADLOCK", "deadlock of one", "deadlock of two", "deadlock of three", "waits and keeps", "several readers", "readers after a cancel", "by priority", "transferred",
		"dropped", "overtaken", "session ended by another", "refused while leaving", "withdrawn by another", "floor below fence", "floor of a revoked holder", "asked to leave by a renewal", "MOVED", "UNAVAILABLE", "NOT_MEMBER", "lingers", "lingers after a loss", "opened by time", "opened by force", "held by nobody", "kept from a waiter",
		"expected", "held before, and expected", "held since the rule, and expected",
	} {
		if seen[what] == 0 {
			places = append(places, what)
		}
	}
	return places
}

// walk is one run. clients are what processes know of their sessions.
type walk struct {
	t       *rapid.T
	reg     *Registry
	naive   naive
	term    uint64
	clock   int64
	clients [4]walkClient
	seen    map[string]int

	fence   uint64           // the newest granted
	granted map[place]uint64 // the holders before the step, and their fences
	silent  bool             // some session was silent before the step
	// lingering is the number of places that lingered before the step.
	lingering int

	seats    [4]walkClient // s to v, of servers 1, 2, 1 and 3
	versions []frozen      // some that were taken on the way
}

// frozen is a version, and what it was when it was taken.
type frozen struct {
	version *Version
	bytes   []byte
}

// checkVersions takes a version from time to time, and checks that earlier versions have
// not changed.
func (w *walk) checkVersions() {
	for _, f := range w.versions {
		if !bytes.Equal(f.version.Encode(), f.bytes) {
			w.t.Fatal("a frozen version has changed")
		}
	}
	if rapid.IntRange(0, 4).Draw(w.t, "freeze") == 0 {
		v := w.reg.Freeze()
		w.versions = append(w.versions, frozen{v, v.Encode()})
		w.versions = w.versions[max(0, len(w.versions)-4):]
	}
}

// walkClient is a process that numbers its requests and may have many in flight. Each may
// arrive at any time, and more than once.
type walkClient struct {
	next     uint64
	sent     []Command
	answered map[uint64]bool
	claims   []uint64 // sequences of its requests to acquire
}

func (w *walk) step() {
	w.clock += rapid.Int64Range(0, 3).Draw(w.t, "time") * 1e9
	c := w.command()
	before, listed := w.queues(), w.listed()
	fx := Effects{WatchLocks: true}
	batch := Batch{Time: w.clock, Wall: rapid.Int64().Draw(w.t, "wall"), Commands: []Command{c}}
	w.reg.Apply(w.term, &batch, &fx)
	w.naive.step(w.term, w.clock, &c)

	told := w.told(&fx)
	if diff := cmp.Diff(w.told(&w.naive.fx), told); diff != "" {
		w.t.Fatalf("%+v: the naive registry says otherwise (-naive +registry):\n%s", c, diff)
	}
	if rapid.IntRange(0, 3).Draw(w.t, "restart") == 0 {
		w.reg = throughSnapshot(w.t, w.reg)
	} else if err := w.reg.Check(); err != nil {
		w.t.Fatal(err)
	}
	w.checkVersions()
	w.compareStates()
	w.compareRules()
	w.checkFences(&fx)
	w.checkDeadlocks(&c, &fx)
	w.checkQueues(before, c.Op == OpTransfer)
	w.checkNamed(listed, &fx)
	w.checkRevoked()
	w.note(&c, &fx, before)
}

// command draws what comes next.
func (w *walk) command() Command {
	if rapid.IntRange(0, 6).Draw(w.t, "live") == 0 {
		return w.aboutGuarded()
	}
	if rapid.IntRange(0, 19).Draw(w.t, "rule") == 0 {
		return w.aboutRules()
	}
	who := rapid.IntRange(0, len(w.clients)-1).Draw(w.t, "who")
	client := &w.clients[who]
	if client.next == 0 {
		*client = walkClient{next: 1, answered: map[uint64]bool{}}
		return w.send(who, Command{Op: OpOpen, TTL: 10e9})
	}
	switch kind := rapid.IntRange(0, 99).Draw(w.t, "kind"); {
	case kind < 60:
		return w.send(who, w.newRequest(client))
	case kind < 85:
		return w.again(client)
	case kind < 90:
		return w.verdict()
	case kind < 92:
		return w.ouster()
	case kind < 93:
		return Command{Op: OpEnd, Session: walkSession(who), Value: "why", By: &Origin{Request: [16]byte(sessionNamed("op"))}}
	case kind < 94:
		w.term++
		return Command{Op: OpMember, Member: &Member{ID: 1 + w.term%3, UID: w.term}}
	case kind < 97:
		return w.send(who, rapid.SampledFrom([]Command{{Op: OpOpen, TTL: 10e9}, {Op: OpRenew}}).Draw(w.t, "renewal"))
	case kind < 98:
		// A client begins again under the old id: what it sent before may still
		// arrive.
		client.next, client.claims = 1, nil
		clear(client.answered)
		return w.send(who, Command{Op: OpClose})
	default:
		return w.malformed(who)
	}
}

// send numbers a request. Some arrive only later, through again; then another request
// that was sent earlier arrives instead.
func (w *walk) send(who int, c Command) Command {
	client := &w.clients[who]
	c.Session = walkSession(who)
	if c.Op == OpOpen && who == len(w.clients)-1 {
		c.Owner = "another"
	}
	c.Sequence = client.next
	c.Low = client.low()
	if c.Op == OpAcquire {
		client.claims = append(client.claims, c.Sequence)
	}
	client.next++
	client.sent = append(client.sent, c)
	if rapid.IntRange(0, 9).Draw(w.t, "late") == 0 {
		return w.again(client)
	}
	return c
}

// again delivers what was sent before, the newer the likelier.
func (w *walk) again(client *walkClient) Command {
	back := rapid.IntRange(0, min(len(client.sent), 30)-1).Draw(w.t, "back")
	return client.sent[len(client.sent)-1-back]
}

// low is the lowest number without an answer.
func (client *walkClient) low() uint64 {
	for sequence := uint64(1); ; sequence++ {
		if !client.answered[sequence] {
			return sequence
		}
	}
}

func (w *walk) newRequest(client *walkClient) Command {
	op := rapid.SampledFrom([]Op{OpAcquire, OpAcquire, OpAcquire, OpAcquire, OpRelease, OpRelease, OpCancel, OpUpdate, OpTransfer, OpRevoke}).Draw(w.t, "op")
	c := Command{Op: op, Value: rapid.SampledFrom([]string{"", "x", "y"}).Draw(w.t, "value")}
	switch op {
	case OpAcquire:
		w.drawResource(&c)
		w.drawTerms(&c)
	case OpRevoke:
		w.drawResource(&c)
		if rapid.IntRange(0, 2).Draw(w.t, "one") == 0 {
			c.Fence = w.fence - min(w.fence, rapid.Uint64Range(0, 3).Draw(w.t, "fence"))
		}
	default:
		c.Hold = w.hold(client)
		c.Unused = op == OpRelease && rapid.IntRange(0, 4).Draw(w.t, "unused") == 0
	}
	return c
}

func (w *walk) drawResource(c *Command) {
	c.Name = rapid.SampledFrom([]string{"a", "b", "pool"}).Draw(w.t, "name")
	c.Class = rapid.SampledFrom([]Class{Lock, Lock, Election}).Draw(w.t, "class")
}

func (w *walk) drawTerms(c *Command) {
	c.Try = rapid.IntRange(0, 3).Draw(w.t, "try") == 0
	for range rapid.SampledFrom([]int{0, 1, 1, 2, 3}).Draw(w.t, "keeps") {
		c.Keeps = append(c.Keeps, w.kept())
	}
	switch {
	case c.Class == Election:
		c.Priority = rapid.Int64Range(-1, 1).Draw(w.t, "priority")
		c.Patience = rapid.SampledFrom([]int64{0, 5e9}).Draw(w.t, "patience")
	case c.Name == "pool":
		c.Limit = rapid.SampledFrom([]uint32{2, 2, 2, 2, 0, 3}).Draw(w.t, "limit")
	default:
		c.Shared = rapid.Bool().Draw(w.t, "shared")
	}
	if !c.Shared && rapid.IntRange(0, 5).Draw(w.t, "linger") == 0 {
		c.AtLeast = rapid.Int64Range(0, 9).Draw(w.t, "at least") * 1e9
		c.LossDelay = rapid.Int64Range(0, 9).Draw(w.t, "delay") * 1e9
	}
}

// kept draws a hold that a caller keeps: mostly an existing hold of any client.
func (w *walk) kept() Kept {
	var held []Kept
	for _, c := range w.naive.claims {
		if c.fence != 0 {
			held = append(held, Kept{c.key.class, c.key.name, c.fence})
		}
	}
	if len(held) == 0 || rapid.IntRange(0, 9).Draw(w.t, "gone") == 0 {
		return Kept{Lock, "a", w.fence}
	}
	return rapid.SampledFrom(held).Draw(w.t, "kept")
}

// hold draws the request that a command names: mostly a claim, sometimes a future request
// or none.
func (w *walk) hold(client *walkClient) uint64 {
	kind := rapid.IntRange(0, 9).Draw(w.t, "hold")
	switch {
	case kind == 0:
		return client.next + rapid.Uint64Range(0, 3).Draw(w.t, "ahead")
	case kind == 1 || len(client.claims) == 0:
		return rapid.Uint64Range(0, client.next).Draw(w.t, "any")
	}
	back := rapid.IntRange(0, min(len(client.claims), 8)-1).Draw(w.t, "back")
	return client.claims[len(client.claims)-1-back]
}

// verdict draws an expiry or a silence: of some sessions, most in the right
// term and with the right renewal.
func (w *walk) verdict() Command {
	c := Command{
		Op:   rapid.SampledFrom([]Op{OpExpire, OpSilence}).Draw(w.t, "verdict"),
		Term: w.term - min(w.term, rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(w.t, "older")),
	}
	for range rapid.IntRange(1, 3).Draw(w.t, "sessions") {
		verdict := Verdict{Session: walkSession(rapid.IntRange(0, len(w.clients)-1).Draw(w.t, "whose"))}
		if rapid.IntRange(0, 4).Draw(w.t, "seat") == 0 {
			verdict.Session = walkSeat(rapid.IntRange(0, len(w.seats)-1).Draw(w.t, "which"))
		}
		if s, alive := w.reg.Session(verdict.Session); alive {
			verdict.Renewals = s.Renewals - rapid.SampledFrom([]uint64{0, 0, 0, 0, 1}).Draw(w.t, "stale")
		}
		if c.Op == OpSilence {
			verdict.Remaining = rapid.Int64Range(0, 10e9).Draw(w.t, "remaining")
		}
		c.Verdicts = append(c.Verdicts, verdict)
	}
	return c
}

// ouster draws a command of the leader against holders: it drops revoked holds, mostly in
// the right term, or replaces the leader of an election by a better candidate.
func (w *walk) ouster() Command {
	claims, _ := w.reg.Revoked()
	if len(claims) == 0 || rapid.Bool().Draw(w.t, "overtake") {
		return Command{Op: OpOvertake, Class: Election, Name: rapid.SampledFrom([]string{"a", "b", "pool"}).Draw(w.t, "name")}
	}
	stray := ClaimID{walkSession(0), rapid.Uint64Range(0, 20).Draw(w.t, "stray")}
	return Command{
		Op: OpDrop, Term: w.term - min(w.term, rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(w.t, "older")),
		Claims: append(claims, stray),
	}
}

func (w *walk) malformed(who int) Command {
	bad := rapid.SampledFrom([]Command{
		{Op: OpAcquire, Sequence: 1}, {Op: OpAcquire, Sequence: 1, Name: "\xff"}, {Op: OpAcquire, Name: "a"},
		{Op: OpAcquire, Sequence: 1, Name: strings.Repeat("x", 513)},
		{Op: OpAcquire, Sequence: 1, Name: "a", Class: Election, Limit: 2},
		{Op: OpAcquire, Sequence: 1, Name: "a", Class: Election, Shared: true}, {Op: OpAcquire, Sequence: 1, Name: "a", Priority: 1},
		{Op: OpAcquire, Sequence: 1, Name: "a", AtLeast: -1}, {Op: OpAcquire, Sequence: 1, Name: "a", LossDelay: MaxLinger + 1}, {Op: OpAcquire, Sequence: 1, Name: "a", AtLeast: 1, Shared: true},
		{Op: OpAcquire, Sequence: 1, Name: "a", Shared: true, Limit: 2}, {Op: OpRevoke, Sequence: 1}, {Op: OpOpen, Sequence: 1, TTL: 1},
	}).Draw(w.t, "malformed")
	bad.Session = walkSession(who)
	return bad
}

// aboutGuarded draws a change of a guard, or a command of a seat, at times again.
func (w *walk) aboutGuarded() Command {
	if rapid.IntRange(0, 2).Draw(w.t, "guard") == 0 {
		c := Command{Op: OpGuard, Value: "why", Guarding: &Guarding{}, By: &Origin{Request: [16]byte(sessionNamed("op"))}}
		if rapid.IntRange(0, 5).Draw(w.t, "watch") == 0 {
			c.Class, c.Guarding.Use.Algorithm = View, rapid.SampledFrom([]string{"", "swim+bully", "reliable+le-lann", "swim", "bully+swim"}).Draw(w.t, "stack")
			return c
		}
		c.Name = rapid.SampledFrom([]string{"a", "b", "p", "po", "x"}).Draw(w.t, "prefix")
		switch rapid.IntRange(0, 5).Draw(w.t, "how") {
		case 0:
			c.Guarding.Remove = true
		case 1:
			c.Guarding.Change = w.naive.guarded.changes - min(w.naive.guarded.changes, rapid.Uint64Range(0, 2).Draw(w.t, "change"))
		case 2, 3:
			c.Guarding.Use.Algorithm = rapid.SampledFrom([]string{"central", "raymond", "bakery"}).Draw(w.t, "algorithm")
		}
		c.Guarding.Force = rapid.IntRange(0, 3).Draw(w.t, "force") == 0
		return c
	}
	who := rapid.IntRange(0, len(w.seats)-1).Draw(w.t, "seat")
	seat := &w.seats[who]
	if len(seat.sent) > 0 && rapid.IntRange(0, 9).Draw(w.t, "late") == 0 {
		return w.again(seat)
	}
	l := &w.naive.guarded
	how := &Guarding{Epoch: l.epoch - min(l.epoch, rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(w.t, "older"))}
	c := Command{Op: rapid.SampledFrom([]Op{OpEnter, OpEnter, OpTurn, OpQuiet, OpQuiet, OpQuiet, OpRenew, OpClose, OpAcquire}).Draw(w.t, "op"), TTL: 12e8, Name: "a", Guarding: how}
	servers := []uint64{1, 2, 1, 3}
	switch c.Op {
	case OpEnter:
		how.Server = servers[who] + rapid.SampledFrom([]uint64{0, 0, 0, 0, 0, 1}).Draw(w.t, "server")
	case OpTurn:
		how.Coordinator = rapid.SampledFrom([]uint64{0, servers[who], 2}).Draw(w.t, "coordinator")
	case OpClose:
		if heir := rapid.IntRange(0, len(w.seats)).Draw(w.t, "heir"); heir < len(w.seats) {
			how.Heir = SeatOf(servers[heir], walkSeat(heir))
		}
	case OpQuiet:
		how.Change = l.changes - min(l.changes, rapid.SampledFrom([]uint64{0, 0, 1, 2}).Draw(w.t, "change"))
	}
	seat.next++
	c.Session, c.Sequence = walkSeat(who), seat.next
	seat.sent = append(seat.sent, c)
	return c
}

func walkSeat(who int) SessionID { return sessionNamed(string(rune('s' + who))) }

func walkSession(who int) SessionID { return sessionNamed(string(rune('a' + who))) }

// told returns the part of fx on which the two must agree: everything except the texts
// for people.
func (w *walk) told(fx *Effects) []string {
	var lines []string
	for _, outcome := range fx.Outcomes {
		outcome.Result.Message, outcome.Result.Deadlock = "", nil
		if holder := outcome.Result.Holder; holder != nil {
			outcome.Result.Holder = wordless(*holder)
		}
		lines = append(lines, fmt.Sprintf("%s/%d %s", sessionName(outcome.Session), outcome.Sequence, resultText(outcome.Result)))
	}
	return append(lines, fmt.Sprint(fx.Renewed, fx.Ended, fx.Elections))
}

// wordless is a holder without the words for people.
func wordless(h Holder) *Holder {
	h.Reason = ""
	return &h
}

// compareStates compares what the two show of themselves.
func (w *walk) compareStates() {
	if stuck := w.naive.forever(); len(stuck) > 0 {
		w.t.Fatalf("%d wait forever", len(stuck))
	}
	shown := w.reg.Counts()
	want := Counts{Sessions: len(w.naive.sessions)}
	want.Fence = w.naive.fence()
	if got, want := guardedText(w.reg.Guarded()), w.naive.guarded.text(); got != want {
		w.t.Fatalf("the view and the guards are\n%swant\n%s", got, want)
	}
	for _, class := range []Class{Lock, Election} {
		resources, _ := w.reg.Freeze().List(class, "", "", 100, 1000)
		for _, res := range resources {
			w.compareResource(res)
			want.Waiters += len(w.naive.queue(key{class, res.Name}))
		}
		names, shut := map[string]bool{}, map[string]bool{}
		for _, claim := range w.naive.claims {
			if claim.key.class == class {
				names[claim.key.name] = true
			}
		}
		for _, p := range w.naive.closed {
			if p.key.class == class && !names[p.key.name] {
				shut[p.key.name] = true
			}
		}
		if len(names)+len(shut) != len(resources) {
			w.t.Fatalf("%d resources of class %d are kept, %d are claimed, and of %d more places linger", len(resources), class, len(names), len(shut))
		}
		want.Locks, want.Elections = want.Elections, len(names)
	}
	if shown != want {
		w.t.Fatalf("counts %+v, want %+v", shown, want)
	}
	for _, s := range w.naive.sessions {
		got, _ := w.reg.Session(s.id)
		if got.TTL != s.ttl || got.Renewals != s.renewals || got.Silent != s.silent || got.Remaining != s.remaining || got.Leaving != s.leaving {
			w.t.Fatalf("session %+v, want %+v", got, s)
		}
	}
}

func (w *walk) compareResource(res Resource) {
	var got, want []string
	for _, h := range res.Holders {
		got = append(got, holderText(*wordless(h)))
	}
	for _, waiter := range res.Waiters {
		got = append(got, fmt.Sprintf("%s/%d waits", sessionName(waiter.Session), waiter.Sequence))
	}
	for _, c := range w.naive.holders(key{res.Class, res.Name}) {
		want = append(want, holderText(*c.holder()))
	}
	for _, c := range w.naive.queue(key{res.Class, res.Name}) {
		want = append(want, fmt.Sprintf("%s/%d waits", sessionName(c.session), c.sequence))
	}
	for _, l := range res.Closed {
		got = append(got, fmt.Sprintf("%s closed for %s", fenceText(l.Fence), durationText(l.Until-w.reg.wall)))
	}
	for _, p := range w.naive.closedOf(key{res.Class, res.Name}) {
		want = append(want, fmt.Sprintf("%s closed for %s", fenceText(p.fence), durationText(p.until-w.naive.now)))
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("%q is %v, want %v", res.Name, got, want)
	}
}
