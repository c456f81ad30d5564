package registry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry/expect"
	"github.com/conclave-io/conclave/internal/service/version"
)

// expected sets the rule of a lock, or removes it if every is 0.
func expected(request uint16, name string, every int64) Command {
	return Command{Op: OpExpect, Name: name, Every: every, By: &Origin{Actor: "cert:ops", Via: "grpc", Request: [16]byte{6, byte(request >> 8), byte(request)}}}
}

// at applies commands in an entry of a time, by both clocks.
func at(r *Registry, replicated, wall int64, commands ...Command) {
	r.Apply(1, &Batch{Time: replicated, Wall: wall, Commands: commands}, new(Effects))
}

// TestWhatCountsAsHeld: each way in which a hold ends is noted with its time and its holder, but for
// a hold that nobody has used.
func TestWhatCountsAsHeld(t *testing.T) {
	const grant, end = 100e9, 130e9
	ask := func(c Command) Command {
		c.Op, c.Session, c.Sequence, c.Name = OpAcquire, sessionNamed("a"), 2, "n"
		return c
	}
	released := Command{Op: OpRelease, Session: sessionNamed("a"), Sequence: 3, Hold: 2}
	unused := released
	unused.Unused = true
	for what, test := range map[string]struct {
		acquire, end Command
		how          Ending // 0 if it does not count
	}{
		"released":      {ask(Command{}), released, Released},
		"shared":        {ask(Command{Shared: true}), released, Released},
		"one of two":    {ask(Command{Limit: 2}), released, Released},
		"stays closed":  {ask(Command{AtLeast: 60e9}), released, Released},
		"closed":        {ask(Command{}), Command{Op: OpClose, Session: sessionNamed("a"), Sequence: 3}, Closed},
		"expired":       {ask(Command{}), Command{Op: OpExpire, Term: 1, Verdicts: []Verdict{{Session: sessionNamed("a"), Renewals: 1}}}, Expired},
		"unused":        {ask(Command{}), unused, 0},
		"another name":  {Command{Op: OpAcquire, Session: sessionNamed("a"), Sequence: 2, Name: "n2"}, released, 0},
		"another class": {ask(Command{Class: Election}), released, 0},
	} {
		t.Run(what, func(t *testing.T) {
			r := atLevel(version.Max)
			at(r, 50e9, 7050e9, Command{Op: OpOpen, Session: sessionNamed("a"), Sequence: 1, TTL: 10e9, Owner: "cert:a", Host: "a1", PID: 7, Program: "report"})
			at(r, 60e9, 7060e9, expected(1, "n", 3600e9))
			at(r, grant, 7100e9, test.acquire)
			if e := r.Freeze().Expected()[0]; (e.Holder != nil) != (test.acquire.Name == "n" && test.acquire.Class == Lock) || e.Last.Fence != 0 {
				t.Errorf("while it is held: %+v", e)
			}
			at(r, end, 7130e9, test.end)
			want := expect.Rule{Name: "n", Period: 3600e9, Set: expect.Moment{Wall: 7060e9, Replicated: 60e9}, By: "cert:ops"}
			if test.how != 0 {
				want.Last = expect.Hold{Fence: r.fence(), Since: 7100e9, Until: expect.Moment{Wall: 7130e9, Replicated: end}, Owner: "cert:a", Host: "a1", PID: 7, Program: "report", How: uint8(test.how)}
			}
			for _, r := range []*Registry{r, throughSnapshot(t, r)} {
				if e := r.Freeze().Expected()[0]; e.Holder != nil || e.Rule != want {
					t.Errorf("after the end: %+v, want %+v", e, want)
				}
			}
		})
	}
}

// A version does not change when a hold ends later, and the digest says that something is different.
func TestRulesInVersionsAndDigests(t *testing.T) {
	r := atLevel(version.Max)
	before := r.Digest()
	applyAll(r, open("a"), expected(1, "n", 60e9), acquire("a", 2, "n"))
	v, digest := r.Freeze(), r.Digest()
	other := throughSnapshot(t, r)
	applyAll(r, release("a", 3, 2))
	applyAll(other, Command{Op: OpExpect, Name: "n"}, release("a", 3, 2))
	if digest == before || r.Digest() == digest || other.Digest() == r.Digest() {
		t.Errorf("digests %x, %x, %x, %x", before, digest, r.Digest(), other.Digest())
	}
	if e := v.Expected(); len(e) != 1 || e[0].Holder == nil || e[0].Last.Fence != 0 {
		t.Errorf("the version has %+v", e)
	}
	if len(other.Freeze().Expected()) != 0 {
		t.Errorf("a rule that was removed: %+v", other.Freeze().Expected())
	}
}

// TestFloodOfRules: the number of rules is bounded, and so is what each may take.
func TestFloodOfRules(t *testing.T) {
	r := atLevel(version.Max)
	long := func(i int) string { return strings.Repeat("x", MaxName-4) + fmt.Sprintf("%04d", i) }
	for i := range expect.MostRules {
		if got := answerTo(t, r, expected(uint16(i), long(i), expect.MaxPeriod)); got.Code != OK {
			t.Fatalf("rule %d: %+v", i, got)
		}
	}
	size := r.Size()
	for i, test := range []struct {
		name  string
		every int64
		want  string
	}{
		{"one more", 60e9, `"one more": 256 names have a rule, the most there may be; remove one with conclave expect remove`},
		{strings.Repeat("x", MaxName+1), 60e9, "the name has 513 bytes: it may have 512"},
		{"", 60e9, "the name is empty: it must have 1 to 512 bytes"},
		{"a\x00b", 60e9, `the name "a\x00b" has the control character U+0000 at byte 1`},
		{long(0), -1, "every: 0 ms: must be between 1 s and 366 days"},
		{long(0), 1, "every: 0 ms: must be between 1 s and 366 days"},
		{long(0), 1<<63 - 1, "every: 9223372036854 ms: must be between 1 s and 366 days"},
		{long(0), -1 << 63, "every: -9223372036854 ms: must be between 1 s and 366 days"},
		{"unknown", 0, `"unknown": has no rule; see conclave expect`},
	} {
		if got := answerTo(t, r, expected(uint16(1000+i), test.name, test.every)); got.Code == OK || got.Message != test.want {
			t.Errorf("%.20q every %d: %d %q\nwant %q", test.name, test.every, got.Code, got.Message, test.want)
		}
	}
	if r.Size() != size || len(r.Freeze().Expected()) != expect.MostRules {
		t.Errorf("%d rules, and the size went from %d to %d", len(r.Freeze().Expected()), size, r.Size())
	}
	// A rule that exists may change, and one that goes makes room.
	for i, c := range []Command{expected(2000, long(3), 60e9), expected(2001, long(4), 0), expected(2002, "one more", 60e9)} {
		if got := answerTo(t, r, c); got.Code != OK {
			t.Errorf("change %d: %+v", i, got)
		}
	}
	throughSnapshot(t, r)
}

// TestRightsToRules: only those who may change guards may set rules. Acts and refusals are on record.
func TestRightsToRules(t *testing.T) {
	r := ruled()
	applyAll(r, Command{Op: OpLevel, From: version.Access, To: version.Linger})
	number := r.trail.numbered
	by := func(c Command, actor string) Command {
		c.By.Actor = actor
		return c
	}
	for i, step := range []struct {
		command Command
		code    Code
	}{
		{by(expected(1, "x/1", 60e9), "cert:a"), Denied}, {by(expected(2, "x/1", 60e9), ""), Unauthenticated},
		{expected(3, "x/1", 60e9), OK}, {expected(3, "x/1", 60e9), OK}, {by(expected(4, "x/1", 0), "cert:a"), Denied}, {expected(5, "x/1", 0), OK},
	} {
		if got := answerTo(t, r, step.command); got.Code != step.code {
			t.Errorf("step %d: %+v", i, got)
		}
	}
	var kept []string
	for _, rec := range r.Records(number) {
		kept = append(kept, fmt.Sprint(rec.Kind, " ", rec.Name, " ", rec.Reason, " ", rec.Result))
	}
	if want := []string{"expect x/1 every 60 s 18", "expect x/1 every 60 s 17", "expect x/1 every 60 s 1", "expect x/1 the rule is removed 18", "expect x/1 the rule is removed 1"}; !slices.Equal(kept, want) {
		t.Errorf("on record are %q\nwant %q", kept, want)
	}
}

// TestRulesAndGuards: a name with a rule never comes under an algorithm, in either order and while
// guards change.
func TestRulesAndGuards(t *testing.T) {
	r := atLevel(version.Max)
	remove := func(prefix string) Command {
		return Command{Op: OpGuard, Name: prefix, Guarding: &Guarding{Remove: true}, By: &Origin{Request: [16]byte{7}}}
	}
	by := func(c Command) Command {
		c.By = &Origin{Request: [16]byte{8}}
		return c
	}
	for i, step := range []struct {
		command Command
		code    Code
	}{
		{by(guard("live/", "central")), OK}, {expected(1, "live/a", 60e9), Invalid},
		{Command{Op: OpExpect, Class: Election, Name: "live/a", Every: 60e9, By: &Origin{Request: [16]byte{9}}}, OK}, // elections have no guard
		{expected(2, "slow/a", 60e9), OK}, {by(guard("slow/", "central")), Invalid}, {by(guard("s", "central")), Invalid},
		{by(guard("slow/b", "central")), OK}, {by(guard("slow/", "")), OK}, {by(guard("s", "central")), OK}, // a longer prefix is guarded by agreement
		{remove("slow/"), Invalid}, {expected(3, "slow/a", 0), OK}, {remove("slow/"), OK}, {expected(4, "slow/a", 60e9), Invalid},
	} {
		if got := answerTo(t, r, step.command); got.Code != step.code {
			t.Errorf("step %d: %+v", i, got)
		}
		throughSnapshot(t, r)
	}
}

// TestRulesNeedTheirLevel: a level that cannot express rules refuses them, and is not returned to while
// there are any.
func TestRulesNeedTheirLevel(t *testing.T) {
	r := atLevel(version.Access)
	if got := answerTo(t, r, expected(1, "n", 60e9)); got.Code != Invalid || !strings.Contains(got.Message, "from level 5 on") {
		t.Errorf("%+v", got)
	}
	applyAll(r, Command{Op: OpLevel, From: version.Access, To: version.Linger}, expected(2, "n", 60e9), Command{Op: OpLevel, From: version.Linger, To: version.Access})
	if level, _ := r.Level(); level != version.Linger || !slices.Equal(r.Freeze().Uses(version.Linger), []string{`the rule that "n" is held every 60 s`}) {
		t.Errorf("level %d, used by %q", level, r.Freeze().Uses(version.Linger))
	}
	applyAll(r, expected(3, "n", 0), Command{Op: OpLevel, From: version.Linger, To: version.Access})
	if level, _ := r.Level(); level != version.Access {
		t.Errorf("level %d", level)
	}
	low := (&Batch{Commands: []Command{expected(1, "n", 60e9)}}).Append(nil, version.Access)
	if _, err := DecodeBatch(low); err == nil {
		t.Errorf("an entry of level %d with a rule was read", version.Access)
	}
}

// TestRulesAfterARestore: rules stay. A hold that was going on counts until the newest entry of the
// backup, because nobody knows what happened to it afterwards.
func TestRulesAfterARestore(t *testing.T) {
	r := atLevel(version.Max)
	at(r, 1e9, 7001e9, open("a"), expected(1, "n", 60e9), expected(2, "m", 60e9), acquire("a", 2, "n"))
	at(r, 9e9, 7009e9, Command{Op: OpTime})
	if err := r.Refound(0); err != nil {
		t.Fatal(err)
	}
	r.ForgetRules() // those of access
	for _, r := range []*Registry{r, throughSnapshot(t, r)} {
		list := r.Freeze().Expected()
		if len(list) != 2 || list[0].Last.Fence != 0 || list[1].Holder != nil || list[1].Last.Until != (expect.Moment{Wall: 7009e9, Replicated: 9e9}) {
			t.Errorf("the rules are %+v", list)
		}
	}
}

// TestRulesWithAWrongClock: the clock of the leader is a day ahead when the hold ends, and right
// afterwards. The name has not been held for as long as replicated time says.
func TestRulesWithAWrongClock(t *testing.T) {
	const hour, day = int64(3600e9), int64(86400e9)
	r := atLevel(version.Max)
	at(r, 0, 100*day, open("a"), expected(1, "n", 26*hour), acquire("a", 2, "n"))
	at(r, hour, 101*day+hour, release("a", 3, 2))
	now := expect.Moment{Wall: 100*day + 28*hour, Replicated: 28 * hour}
	if idle := r.Freeze().Expected()[0].Idle(now); idle != 27*hour {
		t.Errorf("idle for %d hours", idle/hour)
	}
	at(r, 2*hour, -1<<63, openBy("b", "cert:b"), acquire("b", 2, "n"), Command{Op: OpClose, Session: sessionNamed("b"), Sequence: 3})
	if idle := r.Freeze().Expected()[0].Idle(now); idle < 26*hour {
		t.Errorf("idle for %d hours", idle/hour)
	}
	throughSnapshot(t, r)
}
