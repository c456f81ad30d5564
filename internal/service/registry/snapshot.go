package registry

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/version"
)

// EncodedSize returns the approximate size of the result of Encode.
func (v *Version) EncodedSize() int { return v.size }

// Encode returns the whole state, in the format of its level. Equal states encode
// to equal bytes.
func (v *Version) Encode() []byte { return v.EncodeInSteps(func() {}) }

// step is the number of sessions or resources that are encoded at a time.
const step = 256

// EncodeInSteps is like Encode, but calls pause again and again, so that encoding a large state
// does not keep a processor from urgent work.
func (v *Version) EncodeInSteps(pause func()) []byte {
	b := make([]byte, 0, v.size)
	b = append(b, version.At(v.level).Snapshot)
	b = wire.AppendUint(b, uint64(v.level))
	b = wire.AppendBool(b, v.stay)
	b = wire.AppendUint(b, v.epoch)
	b = wire.AppendUint(b, v.counter)
	b = wire.AppendInt(b, v.now)
	b = wire.AppendInt(b, v.wall)
	b = wire.AppendUint(b, v.renewals)

	members := v.Members()
	b = wire.AppendUint(b, uint64(len(members)))
	for _, m := range members {
		b = m.append(b)
	}
	done := 0
	stepped := func() bool {
		if done++; done%step == 0 {
			pause()
		}
		return true
	}
	b = wire.AppendUint(b, uint64(v.byID.Len()))
	v.byID.Scan(func(s *sessionState) bool {
		b = s.append(b)
		return stepped()
	})
	if hasGuarded(v.level) {
		b = appendGuarded(b, v.Guarded())
	}
	b = v.appendAccess(b)
	b = wire.AppendUint(b, uint64(v.names.Len()))
	v.names.Scan(func(res *resource) bool {
		b = res.append(b)
		return stepped()
	})
	return v.appendPast(v.appendExpected(v.appendSettings(v.appendLingers(b))))
}

// LevelOf returns the level of a state that Encode wrote.
func LevelOf(data []byte) (uint32, error) {
	rd := wire.NewReader(data)
	rd.Byte()
	level := rd.Uint32()
	return level, rd.Err()
}

// Decode returns a state that Encode wrote.
func Decode(data []byte) (*Registry, error) {
	rd := wire.NewReader(data)
	if v := rd.Byte(); rd.Err() == nil {
		if err := version.CheckFormat("snapshot", v, func(f version.Formats) byte { return f.Snapshot }); err != nil {
			return nil, err
		}
	}
	d := decoder{rd, New()}
	d.readState()
	if err := rd.Close(); err != nil {
		return nil, fmt.Errorf("snapshot is damaged: %w", err)
	}
	if err := d.reg.Check(); err != nil {
		return nil, fmt.Errorf("snapshot is damaged: %w", err)
	}
	return d.reg, nil
}

// decoder reads a snapshot, or the data of a home, into a registry. Errors are those of the reader.
type decoder struct {
	rd  *wire.Reader
	reg *Registry
}

// readState reads the whole state behind the number of the format into an empty registry.
func (d *decoder) readState() {
	rd, r := d.rd, d.reg
	r.level, r.stay, r.epoch, r.counter, r.now, r.wall, r.renewals = rd.Uint32(), rd.Bool(), rd.Uint(), rd.Uint(), rd.Int(), rd.Int(), rd.Uint()
	each(rd, func() {
		m := readMember(rd)
		if _, known := r.members[m.ID]; known {
			rd.Fail(fmt.Errorf("server %d: recorded twice", m.ID))
		}
		r.members[m.ID] = m
	})
	r.tally.fence = r.fence()
	each(rd, d.addSession)
	d.readGuarded()
	d.readAccess()
	var held []*resource
	each(rd, func() { held = append(held, d.readResource()) })
	if rd.Err() == nil {
		r.resources.reserve(len(held))
		for _, res := range held {
			d.insert(res)
		}
	}
	d.readLingers()
	d.readSettings()
	d.readExpected()
	d.readPast()
	r.fold()
	r.recount(r.rules)
}

// each reads a count and calls read that many times. It stops at an error, so that a damaged
// count does not allocate memory for elements that are not there.
func each(rd *wire.Reader, read func()) {
	for n := rd.Count(); n > 0 && rd.Err() == nil; n-- {
		read()
	}
}

func (st *sessionState) append(b []byte) []byte {
	s := st.of
	b = append(b, s.id[:]...)
	b = wire.AppendBytes(b, s.owner)
	b = wire.AppendInt(b, s.ttl)
	b = wire.AppendBytes(b, s.host)
	b = wire.AppendInt(b, s.pid)
	b = wire.AppendBytes(b, s.program)
	b = wire.AppendInt(b, s.opened)
	b = wire.AppendUint(b, st.renewals)
	b = wire.AppendBool(b, st.silent)
	b = wire.AppendInt(b, st.remaining)
	b = wire.AppendBool(b, st.leaving)
	b = wire.AppendUint(b, st.low)
	b = wire.AppendUint(b, uint64(len(st.answers)))
	for i := range st.answers {
		b = st.answers[i].append(b)
	}
	return b
}

func (d *decoder) addSession() {
	s := d.readSession()
	if d.reg.sessions[s.id] != nil {
		d.rd.Fail(fmt.Errorf("session %v: stored twice", s.id))
		return
	}
	d.reg.keep(s)
}

// readSession reads a session, and counts its answers.
func (d *decoder) readSession() *session {
	s := &session{tally: &d.reg.tally}
	s.sessionState = &sessionState{of: s, generation: d.reg.generation}
	d.rd.Fixed(s.id[:])
	owner := d.rd.String()
	s.ttl = d.rd.Int()
	s.party = newParty(owner, d.rd.String(), d.rd.Int(), d.rd.String())
	s.opened = d.rd.Int()
	s.renewals = d.rd.Uint()
	s.silent = d.rd.Bool()
	s.remaining = d.rd.Int()
	s.leaving = d.rd.Bool()
	s.low = d.rd.Uint()
	each(d.rd, func() {
		a := readAnswer(d.rd)
		s.answers = append(s.answers, a)
		s.addAnswer(&a)
	})
	s.fixed = s.hash()
	return s
}

func (a *answer) append(b []byte) []byte {
	b = wire.AppendUint(b, a.sequence)
	b = append(b, byte(a.code))
	b = wire.AppendBytes(b, a.message)
	b = wire.AppendUint(b, a.fence)
	return wire.AppendUint(b, a.floor)
}

func readAnswer(rd *wire.Reader) answer {
	return answer{sequence: rd.Uint(), code: Code(rd.Byte()), message: rd.String(), fence: rd.Uint(), floor: rd.Uint()}
}

func (res *resource) append(b []byte) []byte {
	b = append(b, byte(res.class))
	b = wire.AppendBytes(b, res.name)
	b = wire.AppendUint(b, uint64(res.limit))
	for _, claims := range [][]*claim{res.holders(), res.queue()} {
		b = wire.AppendUint(b, uint64(len(claims)))
		for _, c := range claims {
			b = append(b, c.session.id[:]...)
			b = wire.AppendUint(b, c.sequence)
			b = wire.AppendUint(b, c.fence)
			b = wire.AppendInt(b, c.since)
			b = c.extras.append(b)
		}
	}
	return b
}

// The extras that a claim has, in the byte that begins them.
const (
	hasShared    = 1 << iota
	hasCandidacy // value, priority and patience
	hasRevocation
	hasName      // is named
	hasTime      // at
	hasKept      // keeps, from the level that has them
	hasLingering // atLeast and lossDelay, from the level that has them
)

// has says which extras a claim has.
func (t *extras) has() (has byte) {
	if t.shared {
		has |= hasShared
	}
	if t.value != "" || t.priority != 0 || t.patience != 0 {
		has |= hasCandidacy
	}
	if t.revoked {
		has |= hasRevocation
	}
	if t.named {
		has |= hasName
	}
	if t.at != 0 {
		has |= hasTime
	}
	if t.keeps != nil {
		has |= hasKept
	}
	if t.lingers() {
		has |= hasLingering
	}
	return has
}

func (t *extras) append(b []byte) []byte {
	has := t.has()
	b = append(b, has)
	if has&hasCandidacy != 0 {
		b = wire.AppendBytes(b, t.value)
		b = wire.AppendInt(b, t.priority)
		b = wire.AppendInt(b, t.patience)
	}
	if has&hasRevocation != 0 {
		b = wire.AppendBytes(b, t.reason)
		b = wire.AppendBytes(b, t.by)
	}
	if has&hasTime != 0 {
		b = wire.AppendInt(b, t.at)
	}
	if has&hasKept != 0 {
		b = appendKeeps(b, t.keeps.holds)
	}
	if has&hasLingering != 0 {
		b = wire.AppendInt(b, t.atLeast)
		b = wire.AppendInt(b, t.lossDelay)
	}
	return b
}

func readExtras(rd *wire.Reader, level uint32) *extras {
	has, known := rd.Byte(), uint16(hasKept)
	if hasKeeps(level) {
		known <<= 1
	}
	if hasLinger(level) {
		known <<= 1
	}
	switch {
	case has == 0:
		return plain
	case has == hasShared:
		return shared
	case uint16(has) >= known:
		rd.Fail(fmt.Errorf("extras %#x of a claim: unknown", has))
		return plain
	}
	t := &extras{shared: has&hasShared != 0, named: has&hasName != 0}
	if has&hasCandidacy != 0 {
		t.value, t.priority, t.patience = rd.String(), rd.Int(), rd.Int()
	}
	if t.revoked = has&hasRevocation != 0; t.revoked {
		t.reason, t.by = rd.String(), rd.String()
	}
	if has&hasTime != 0 {
		t.at = rd.Int()
	}
	if has&hasKept != 0 {
		t.keeps = &keeping{readKeeps(rd)}
	}
	if has&hasLingering != 0 {
		t.atLeast, t.lossDelay = rd.Int(), rd.Int()
	}
	return t
}

func (d *decoder) readResource() *resource {
	res := &resource{class: Class(d.rd.Byte()), name: d.rd.String(), limit: readLimit(d.rd), generation: d.reg.generation}
	if res.class >= classes {
		d.rd.Fail(fmt.Errorf("%q has the unknown class %d", res.name, res.class))
		return res
	}
	holders, queue := d.readClaims(res), d.readClaims(res)
	for _, c := range holders {
		c.session.holds++
	}
	for _, c := range queue {
		d.reg.waits(c, 1)
	}
	if len(holders) <= 1 && len(queue) == 0 {
		copy(res.one[:], holders)
	} else {
		res.crowd = &crowd{holders: holders, queue: queue, counted: len(queue)}
	}
	return res
}

// insert adds a resource that was read.
func (d *decoder) insert(res *resource) {
	if d.reg.resources.put(res) != nil {
		d.rd.Fail(fmt.Errorf("%q: stored twice", res.name))
		return
	}
	d.reg.add(res)
	d.reg.names.Put(res)
	res.place = present
}

func (d *decoder) readClaims(res *resource) []*claim {
	var claims []*claim
	each(d.rd, func() {
		var id SessionID
		d.rd.Fixed(id[:])
		c := &claim{resource: res, sequence: d.rd.Uint(), fence: d.rd.Uint(), since: d.rd.Int(), extras: readExtras(d.rd, d.reg.level)}
		if c.session = d.reg.sessions[id]; c.session == nil {
			d.rd.Fail(fmt.Errorf("%q is claimed by the unknown session %v", res.name, id))
			return
		}
		d.reg.reenter(c)
		c.session.claimed += c.hash()
		if c.revoked {
			c.session.revocations++
		}
		d.reg.list(c)
		claims = append(claims, c)
	})
	return claims
}

// Check returns the first broken invariant, or nil.
func (r *Registry) Check() error {
	switch {
	case r.level == 0:
		return errors.New("level 0: the first is 1")
	case r.epoch == 0 || r.epoch > maxEpoch:
		return fmt.Errorf("epoch %d is not within 1 to %d", r.epoch, maxEpoch)
	case r.counter >= counterTurn:
		return fmt.Errorf("counter %d ran past its turn at %d", r.counter, counterTurn)
	case r.unsettled:
		return errors.New("the change of seats or guards by the last entry is not settled")
	}
	r.fold()
	claims, waiters, listed := 0, 0, 0
	for res := range r.names.Scan {
		if err := r.checkResource(res); err != nil {
			return err
		}
		claims += len(res.holders()) + len(res.queue())
		waiters += len(res.queue())
		listed += r.listed(res)
	}
	for s := range r.all() {
		if err := r.checkSession(s); err != nil {
			return err
		}
		claims -= s.claims.len()
	}
	switch {
	case r.resources.len() != r.names.Len() || r.held[Lock]+r.held[Election] != r.names.Len() || len(r.sessions) != r.byID.Len():
		return fmt.Errorf("%d of %d resources (%v by class) and %d of %d sessions are in order", r.names.Len(), r.resources.len(), r.held, r.byID.Len(), len(r.sessions))
	case claims != 0:
		return fmt.Errorf("resources have %d claims more than sessions", claims)
	case waiters != r.waiters:
		return fmt.Errorf("%d wait, %d are counted", waiters, r.waiters)
	case listed != len(r.revoked)+len(r.eager):
		return fmt.Errorf("%d claims are revoked and %d eager, %d should be either", len(r.revoked), len(r.eager), listed)
	}
	return cmp.Or(r.lingers.check(r), r.checkExpected(r.fence()), r.checkControl(r.rules), r.checkSeats(r.Guarded()), r.checkGuards(r.epoch))
}

func (st *state) checkSession(s *session) error {
	if st.sessions[s.id] != s {
		return fmt.Errorf("session %v is not found by its id", s.id)
	}
	if int(s.holds+s.waits) != s.claims.len() {
		return fmt.Errorf("session %v: %d holds and %d waits are counted, it has %d claims", s.id, s.holds, s.waits, s.claims.len())
	}
	if s.leaving && (s.claims.len() == 0 || s.waits > 0 || int(s.revocations) < s.claims.len()) {
		return fmt.Errorf("session %v is ending: of its %d claims %d wait and %d are revoked", s.id, s.claims.len(), s.waits, s.revocations)
	}
	next := s.low
	for _, a := range s.answers {
		switch {
		case a.sequence < next:
			return fmt.Errorf("session %v: answer %d is out of order, or below the low mark %d", s.id, a.sequence, s.low)
		case len(a.message) > MaxMessage:
			return fmt.Errorf("session %v: answer %d has a message of %d bytes, over %d", s.id, a.sequence, len(a.message), MaxMessage)
		}
		next = a.sequence + 1
	}
	return nil
}

func (r *Registry) checkResource(res *resource) error {
	switch {
	case r.resources.get(res.key()) != res:
		return fmt.Errorf("%q is not found by its name", res.name)
	case len(res.holders()) == 0 && (len(res.queue()) == 0 || !r.drains(res) && r.lingers.closed(res.key()) == 0):
		return fmt.Errorf("%q is kept though nobody holds it", res.name)
	case len(res.holders()) > int(res.limit) && !res.holders()[0].shared:
		return fmt.Errorf("%q has %d holders, the limit is %d", res.name, len(res.holders()), res.limit)
	case len(res.queue()) > 0 && res.fits(res.queue()[0].extras, r.lingers.closed(res.key())) && !r.drains(res):
		return fmt.Errorf("%q has room and %d wait", res.name, len(res.queue()))
	case r.moved(res):
		return fmt.Errorf("%q is claimed here, and an algorithm guards it", res.name)
	}
	if r.home {
		return r.checkClaims(res, math.MaxUint64)
	}
	return r.checkClaims(res, r.fence())
}

// checkClaims checks the claims to a resource, given the largest fence that a hold can have.
func (st *state) checkClaims(res *resource, largest uint64) error {
	newest := uint64(0)
	for i, c := range slices.Concat(res.holders(), res.queue()) {
		switch {
		case c.held() != (i < len(res.holders())):
			return fmt.Errorf("%q: request %d of %v has the fence %d in the wrong place", res.name, c.sequence, c.session.id, c.fence)
		case c.held() && c.shared != res.holders()[0].shared:
			return fmt.Errorf("%q: has both shared and exclusive holders", res.name)
		case c.keeps != nil && (c.held() || !c.keeps.ordered()):
			return fmt.Errorf("%q: request %d of %v keeps other holds although it holds, or keeps them out of order", res.name, c.sequence, c.session.id)
		case c.revoked && !c.held():
			return fmt.Errorf("%q: request %d of %v waits and is revoked", res.name, c.sequence, c.session.id)
		case c.fence > largest:
			return fmt.Errorf("%q: the fence %d is above the newest", res.name, c.fence)
		case c.held() && c.fence <= newest:
			return fmt.Errorf("%q: the fence %d comes after %d", res.name, c.fence, newest)
		case c.resource != res:
			return fmt.Errorf("%q: request %d of %v points to another resource", res.name, c.sequence, c.session.id)
		case c.session.claims.get(number(c.sequence)) != c || st.sessions[c.session.id] != c.session:
			return fmt.Errorf("%q: request %d of %v is not known to its session", res.name, c.sequence, c.session.id)
		}
		newest = max(newest, c.fence)
	}
	return nil
}
