package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/registry/expect"
	"github.com/conclave-io/conclave/internal/service/settings"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Standing is the intended role of a server. The leader changes the configuration of
// agreement accordingly, one step at a time.
type Standing uint8

// The standings. Numbers are part of the log's format: append only.
const (
	// Voter is a member that votes, or will vote once it has caught up.
	Voter Standing = iota
	// Learner is a member that receives the log and does not vote.
	Learner
	// Removed is a server that was a member, or was joining, and never will be
	// again: its id is not given to another server.
	Removed

	standings
)

func (s Standing) String() string {
	if s < standings {
		return [standings]string{"voter", "learner", "removed"}[s]
	}
	return "unknown"
}

// MaxAddress bounds an address of a server, in bytes.
const MaxAddress = 1024

// Member is the permanent record of a server.
type Member struct {
	ID uint64
	// UID was drawn when the server's data directory was created. A server that comes back
	// with a different UID has lost its data. It is 0 while an id is only reserved.
	UID uint64
	// PeerAddress and ClientAddress are its addresses for servers and for clients, as far as
	// known.
	PeerAddress, ClientAddress string
	Standing                   Standing
}

// Reserved reports whether the id of a recorded server is only reserved. A founder that no
// server has met yet has no record at all.
func (m Member) Reserved() bool { return m.UID == 0 && m.Standing != Removed }

func (m Member) append(b []byte) []byte {
	b = wire.AppendUint(b, m.ID)
	b = wire.AppendUint(b, m.UID)
	b = wire.AppendBytes(b, m.PeerAddress)
	b = wire.AppendBytes(b, m.ClientAddress)
	return append(b, byte(m.Standing))
}

func readMember(rd *wire.Reader) Member {
	m := Member{ID: rd.Uint(), UID: rd.Uint(), PeerAddress: rd.String(), ClientAddress: rd.String(), Standing: Standing(rd.Byte())}
	if m.Standing >= standings {
		rd.Fail(fmt.Errorf("the standing %d of server %d is unknown", m.Standing, m.ID))
	}
	return m
}

// record updates the record of a server. A removal is final, whatever was under way when it
// was decided.
func (r *Registry) record(c *Command, fx *Effects) {
	m := c.member()
	if r.members[m.ID].Standing == Removed {
		return
	}
	rec := Record{Origin: c.Origin(), Kind: "member", Server: m.ID, Reason: m.Standing.String() + " at " + m.PeerAddress, Result: OK}
	if refusal := (Result{}); r.ForbidsMember(c.Origin(), m, &refusal) {
		rec.Result = refusal.Code
		r.put(rec)
		return
	}
	if next := r.rulesWith(c.Origin(), m); next != r.rules {
		r.replaceRules(next)
	}
	r.members = maps.Clone(r.members) // versions share the old one
	r.members[m.ID] = m
	fx.Members = true
	r.put(rec)
}

// ForbidsMember reports whether the rules forbid to put a server on record to whoever asks
// for it, and fills in why. A join token allows it for one server.
func (r *Registry) ForbidsMember(origin Origin, m Member, refusal *Result) bool {
	if !r.closed() || access.Source(origin.Actor) != access.Joining {
		return r.Forbids(origin, access.Members, refusal)
	}
	_, err := r.rules.Join(origin.Actor, m.PeerAddress, m.UID, r.wall)
	if err != nil {
		*refusal = Result{Code: Denied, Message: remembered(err.Error())}
	}
	return err != nil
}

// rulesWith returns the rules after a server was put on record: they have which server has joined
// by a token, and lack the join tokens that are of no more use.
func (h *head) rulesWith(origin Origin, m Member) *access.State {
	if h.rules == nil {
		return nil
	}
	next := h.rules
	if next.Mode() == access.Closed && access.Source(origin.Actor) == access.Joining {
		next, _ = next.Join(origin.Actor, m.PeerAddress, m.UID, h.wall)
	}
	gone := ""
	if m.Standing == Removed {
		gone = m.PeerAddress
	}
	return next.Trim(h.wall, gone)
}

// setLevel changes the level, if it is still the one that the command names.
func (r *Registry) setLevel(c *Command) {
	if c.From != r.level || r.pinned(c.To) || !hasLinger(c.To) && r.lingering+r.lingers.len()+r.expected.Len() > 0 || !hasSettings(c.To) && r.settings.Changed() {
		return
	}
	if refusal := (Result{}); r.Forbids(c.Origin(), access.Upgrade, &refusal) {
		r.put(Record{Origin: c.Origin(), Kind: "level", Reason: levels(c), Result: refusal.Code})
		return
	}
	r.level, r.stay = c.To, c.Stay
	if !hasKeeps(r.level) {
		r.forgetKeeps()
	}
	if !hasSettings(r.level) {
		r.settings, r.backup = nil, 0
	}
	if c.From != c.To {
		r.relevel()
	}
	r.put(Record{Origin: c.Origin(), Kind: "level", Reason: levels(c), Result: OK})
}

// administer carries out an operator's command without a session, and records it.
func (r *Registry) administer(c *Command, fx *Effects) (result Result) {
	switch c.Op {
	case OpGuard:
		result = r.setGuard(c, fx)
		r.put(Record{Origin: c.Origin(), Kind: "guard", Name: c.Name, Reason: c.Value, Result: result.Code})
	case OpEnd:
		owner := ""
		if s := r.sessions[c.Session]; s != nil {
			owner = s.owner
		}
		result = r.dismiss(c, fx)
		r.put(Record{Origin: c.Origin(), Kind: "end-session", Name: c.Session.String(), Owner: owner, Reason: c.Value, Result: result.Code})
	case OpExpect:
		if !r.Forbids(c.Origin(), access.Members, &result) {
			result = r.setExpected(c)
		}
		r.put(Record{Origin: c.Origin(), Kind: "expect", Class: c.Class, Name: c.Name, Reason: c.every(), Result: result.Code})
	case OpAccess:
		before := r.rules
		result = r.setRules(c, fx)
		if changed := before != r.rules; c.Change != nil && (changed || result.Code != OK) {
			r.put(Record{Origin: c.Origin(), Kind: "access", Reason: c.Change.String(), Result: result.Code}) // without secrets
		}
	case OpNote:
		result = r.putNote(c)
	case OpSet:
		before := r.settings
		if !r.Forbids(c.Origin(), access.Members, &result) {
			result = r.set(c)
		}
		if r.settings != before || result.Code != OK {
			r.put(Record{Origin: c.Origin(), Kind: "setting", Name: c.Name, Reason: c.Value, Result: result.Code})
		}
	}
	return result
}

// hasSettings reports whether the cluster has settings at a level.
func hasSettings(level uint32) bool { return level >= version.Settings }

// Settings returns the settings of the cluster. A State never changes.
func (h *head) Settings() *settings.State { return h.settings }

// LastBackup returns when a server sent the end of the last backup on record, by the wall clock of the
// leader, in ns since 1970, or 0.
func (h *head) LastBackup() int64 { return h.backup }

// set changes a setting. The leader acts by it before it writes later commands into the log. Apply does
// not, because what a setting demands of a command may depend on the release.
func (h *head) set(c *Command) Result {
	switch problem := c.Validate(); {
	case problem != "":
		return Result{Code: Invalid, Message: problem}
	case !hasSettings(h.level):
		return Result{Code: Invalid, Message: fmt.Sprintf("level %d: the cluster has settings from level %d on: see conclave upgrade status", h.level, version.Settings)}
	}
	h.settings = h.settings.With(c.Name, c.Value, uint64(h.now))
	return Result{Code: OK}
}

// setting names a setting that is not the default, or returns "".
func (v *Version) setting() string {
	for _, s := range v.settings.List() {
		if s.Value != s.Values[0] {
			return fmt.Sprintf("the setting %s = %s", s.Name, s.Value)
		}
	}
	return ""
}

// every describes what an OpExpect does.
func (c *Command) every() string {
	if c.Every == 0 {
		return "the rule is removed"
	}
	return fmt.Sprintf("every %d s", c.Every/1e9)
}

// ruleTexts bounds the texts of the last hold in a rule: its owner, host and program.
const ruleTexts = 3 * MaxText

// RuleSize returns the largest approximate size of the rule that a command sets.
func (c *Command) RuleSize() int {
	if c.Op != OpExpect || c.Every == 0 {
		return 0
	}
	return 32 + ruleTexts
}

// setExpected sets or removes the rule that a name is expected to be held.
func (h *head) setExpected(c *Command) Result {
	rule := h.expected.Find(uint8(c.Class), c.Name)
	switch problem := c.Validate(); {
	case problem != "":
		return Result{Code: Invalid, Message: problem}
	case !hasLinger(h.level):
		return Result{Code: Invalid, Message: fmt.Sprintf("level %d: names are expected to be held from level %d on: see conclave upgrade status", h.level, version.Linger)}
	case c.Every == 0 && rule == nil:
		return Result{Code: NotFound, Message: fmt.Sprintf("%s: has no rule; see conclave expect", quoted(c.Name))}
	case c.Every == 0:
		h.expected = h.expected.Without(uint8(c.Class), c.Name)
		return Result{Code: OK}
	case rule == nil && h.expected.Len() == expect.MostRules:
		return Result{Code: Exhausted, Message: fmt.Sprintf("%s: %d names have a rule, the most there may be; remove one with conclave expect remove", quoted(c.Name), expect.MostRules)}
	case c.Class == Lock && h.Guarded().MayGuard(c.Name):
		return Result{Code: Invalid, Message: fmt.Sprintf("%s: an algorithm guards the name, or is about to: its holds are not in the log, so no rule can see them", quoted(c.Name))}
	}
	next := expect.Rule{Class: uint8(c.Class), Name: c.Name, Set: expect.Moment{Wall: h.wall, Replicated: h.now}}
	if rule != nil {
		next = *rule
	}
	next.Period, next.By = c.Every, c.Origin().Actor
	h.expected = h.expected.With(next)
	return Result{Code: OK}
}

// noteEnd notes for the rule of a name, if it has one, that a hold ends now.
func (h *head) noteEnd(c *claim, how Ending) {
	rule := h.expected.Find(uint8(c.resource.class), c.resource.name)
	if rule == nil {
		return
	}
	of := c.session.party
	h.expected = h.expected.Ended(rule, expect.Hold{
		Fence: c.fence, Since: c.since, Until: expect.Moment{Wall: h.wall, Replicated: h.now},
		Owner: of.owner, Host: of.host, Program: of.program, PID: of.pid, How: uint8(how),
	})
}

// Expected is a rule that a name is expected to be held, with its present holder.
type Expected struct {
	expect.Rule
	// Holder is the newest holder, nil if nobody holds the name.
	Holder *Holder
}

// Expected returns the rules by class and name.
func (v *Version) Expected() []Expected { return expectedIn(v.expected, v.find) }

// ExpectedIn does the same for a registry, and makes no version of it.
func ExpectedIn(r *Registry) []Expected { return expectedIn(r.expected, r.find) }

func expectedIn(rules *expect.Rules, find func(Class, string) *resource) []Expected {
	if rules.Len() == 0 {
		return nil
	}
	list := make([]Expected, 0, rules.Len())
	for _, rule := range rules.All() {
		e := Expected{Rule: *rule}
		if res := find(Class(rule.Class), rule.Name); res.held() {
			holders := res.holders()
			e.Holder = new(holders[len(holders)-1].holder())
		}
		list = append(list, e)
	}
	return list
}

// Idle returns for how long nobody has held the name, as far as the clocks of a reader tell; 0 while
// somebody holds it.
func (e *Expected) Idle(now expect.Moment) int64 {
	if e.Holder != nil {
		return 0
	}
	return e.Rule.Idle(now)
}

// Overdue reports whether the name has not been held for longer than its period.
func (e *Expected) Overdue(now expect.Moment) bool { return e.Idle(now) > e.Period }

// expectation names a rule, or returns "".
func (v *Version) expectation() string {
	if v.expected.Len() == 0 {
		return ""
	}
	first := v.expected.All()[0]
	return fmt.Sprintf("the rule that %s is held every %d s", quoted(first.Name), first.Period/1e9)
}

// expectedUnder returns the name of a lock with a rule that an algorithm would guard after a change of
// a guard, or "".
func (h *head) expectedUnder(c *Command) string {
	if h.expected.Len() == 0 || c.Class != Lock {
		return ""
	}
	after := h.Guarded().Clone()
	if c.guarding().Remove {
		after.Remove(c.Name, view.Conditions{})
	} else {
		after.Set(c.Name, c.guarding().Use, view.Conditions{})
	}
	for _, rule := range h.expected.All() {
		if rule.Class == uint8(Lock) && strings.HasPrefix(rule.Name, c.Name) && after.MayGuard(rule.Name) {
			return rule.Name
		}
	}
	return ""
}

func (v *Version) appendExpected(b []byte) []byte {
	if !hasLinger(v.level) {
		return b
	}
	return v.expected.Append(b)
}

func (d *decoder) readExpected() {
	if hasLinger(d.reg.level) {
		d.reg.expected = expect.Read(d.rd)
	}
}

// checkExpected returns the first broken invariant of rules about names, given the newest fence, or nil.
func (h *head) checkExpected(newest uint64) error {
	for _, rule := range h.expected.All() {
		switch {
		case rule.Class >= uint8(classes) || ValidateName(rule.Name) != "":
			return fmt.Errorf("the name %.64q of the class %d has a rule and cannot be held", rule.Name, rule.Class)
		case rule.Class == uint8(Lock) && h.isGuarded(Lock, rule.Name):
			return fmt.Errorf("%q has a rule, and an algorithm guards it", rule.Name)
		case rule.Last.Fence > newest:
			return fmt.Errorf("%q: the fence %d of its last hold is above the newest", rule.Name, rule.Last.Fence)
		}
	}
	if !hasLinger(h.level) && h.expected.Len() > 0 {
		return fmt.Errorf("level %d has %d rules about names", h.level, h.expected.Len())
	}
	return nil
}

// appendSettings appends the settings and the time of the last backup, if the level has them.
func (v *Version) appendSettings(b []byte) []byte {
	if !hasSettings(v.level) {
		return b
	}
	return wire.AppendInt(v.settings.Append(b), v.backup)
}

// readSettings reads the settings and the time of the last backup, if the level has them.
func (d *decoder) readSettings() {
	if hasSettings(d.reg.level) {
		d.reg.settings, d.reg.backup = settings.Read(d.rd), d.rd.Int()
	}
}

// Refound turns the state of a cluster into one from which a new cluster can begin. All
// sessions end, and all holds with them: nobody knows what their programs have acquired and
// released since, and the cluster that granted these holds is gone. All servers are forgotten.
// What stays are the guards, the history of holds, including those of the ended sessions, and
// the order of fences: new fences are larger than all that the old cluster gave according to
// this state, and larger than above, a fence known to have been given, or 0.
func (r *Registry) Refound(above uint64) error {
	// One epoch further would be enough, unless the old cluster's counter began a new epoch
	// after this state.
	epoch := max(r.epoch+2, above>>counterBits+1)
	if epoch > maxEpoch {
		return fmt.Errorf("fences: no epoch is left above %d: the largest is %d", epoch-1, maxEpoch)
	}
	r.frozen = nil
	r.end(slices.Collect(r.all()), Expired, new(Effects))
	r.members = make(map[uint64]Member)
	r.epoch, r.counter = epoch, 0
	if r.guarded != nil {
		r.thawGuarded().reseat(epoch)
		r.unsettled = false
	}
	r.put(Record{Kind: "restore", Reason: "a new cluster begins from a backup", Result: OK})
	return nil
}

// ForgetRules removes the access rules, as in a new cluster. Tokens, quotas and
// administrators are removed with them.
func (r *Registry) ForgetRules() {
	if r.rules == nil {
		return
	}
	r.frozen = nil
	r.replaceRules(access.New(access.Unset))
	r.put(Record{Kind: "access", Reason: "a restore has left out the rules of the backup", Result: OK})
}
