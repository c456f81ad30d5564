package leasemodel

import (
	"fmt"
	"strings"
	"testing"
)

// play feeds a Run with a run of three servers and a client with a TTL of 300 and a
// margin of 100. All clocks show now.
type play struct {
	t       *testing.T
	run     *Run
	now     int64
	session *Session
	index   uint64
	err     error // the first objection
}

func newPlay(t *testing.T) *play {
	p := &play{t: t, run: NewRun()}
	for id := range uint64(3) {
		p.run.Boot(id+1, false)
	}
	p.session = p.run.Open(300, 100, func() int64 { return p.now })
	return p
}

func (p *play) note(err error) {
	if p.err == nil {
		p.err = err
	}
}

var founders = []uint64{1, 2, 3}

// elect makes a server the leader of a term, with the vote of another.
func (p *play) elect(id, voter, term uint64) {
	p.note(p.run.Vote(voter, id, term))
	p.note(p.run.Elect(id, term, founders))
	p.log(id, term)
}

// log lets a leader append an entry to its log. The leader and server 3 store it, and the
// leader applies it.
func (p *play) log(id, term uint64, entries ...Entry) {
	p.index++
	for i := range entries {
		entries[i].Session = p.session
	}
	p.note(p.run.Propose(id, term, p.index, p.index, p.now, entries))
	p.note(p.run.Store(3, id, term, p.index, true))
	p.note(p.run.Commit(id, id, p.index, p.index, founders))
	p.run.Apply(id, p.index, p.now)
}

// open opens the session by the log of server 1.
func (p *play) open() {
	p.elect(1, 2, 1)
	p.session.Send(1)
	p.note(p.run.Arrive(1, p.session, Opens, 1, p.now, false))
	p.log(1, 1, Entry{Op: Opens, Number: 1})
	p.note(p.session.Receive(1))
	p.note(p.session.Believes(200))
	p.shows(1, View{Open: true, Renewals: 1, Left: 300})
}

func (p *play) shows(id uint64, v View) { p.note(p.run.Compare(id, p.session, p.now, &v, founders)) }

// renew renews the session at server 1 by a round. Server 2 answers the round if it is
// counted.
func (p *play) renew(answered bool) {
	p.now += 50
	p.session.Send(2)
	p.note(p.run.Arrive(1, p.session, Renews, 2, p.now, true))
	p.run.Begin(1, 1, 1)
	if answered {
		p.note(p.run.Answer(2, 1, 1, 1, true))
	}
	p.now += 10
	p.note(p.run.Reply(1, p.session, 2, p.now, false, false, founders))
	p.note(p.session.Receive(2))
	p.note(p.session.Believes(250))
	p.shows(1, View{Open: true, Renewals: 1, Left: 300})
}

// TestFollow feeds short runs to the model. It must allow all decisions, or all but the
// last.
func TestFollow(t *testing.T) {
	verdict := func(o Op, term uint64, left int64) Entry { return Entry{Op: o, Term: term, Renewals: 1, Value: left} }
	for name, c := range map[string]struct {
		play      func(p *play)
		objection string
	}{
		"a session is opened and renewed":  {func(p *play) { p.open(); p.renew(true) }, ""},
		"a round that nobody has answered": {func(p *play) { p.open(); p.renew(false) }, "rule confirm"},
		"its time is over":                 {func(p *play) { p.open(); p.now = 300; p.log(1, 1, verdict(Expires, 1, 0)) }, ""},
		"it expires too early":             {func(p *play) { p.open(); p.now = 299; p.log(1, 1, verdict(Expires, 1, 0)) }, "rule expire"},
		"a verdict of another term":        {func(p *play) { p.open(); p.now = 300; p.log(1, 1, verdict(Expires, 9, 0)) }, "verdict"},
		"it is silent":                     {func(p *play) { p.open(); p.now = 200; p.log(1, 1, verdict(Silences, 1, 100)) }, ""},
		"silence and expiry, both decided before they have room": {func(p *play) {
			p.open()
			p.now = 300
			p.session.Send(2)
			p.note(p.run.Arrive(1, p.session, Renews, 2, p.now, false)) // it expires: that was decided
			p.log(1, 1, verdict(Silences, 1, 100), verdict(Expires, 1, 0))
		}, ""},
		"it has more left than is on record": {func(p *play) { p.open(); p.now = 200; p.log(1, 1, verdict(Silences, 1, 99)) }, "rule silence"},
		"a silent one is renewed by a round": {func(p *play) {
			p.open()
			p.log(1, 1)
			p.now = 200
			p.log(1, 1, verdict(Silences, 1, 100))
			p.renew(true)
		}, "rule arrive"},
		"a new leader gives it its TTL": {func(p *play) {
			p.open()
			p.now = 290
			p.elect(2, 3, 2)
			p.shows(2, View{Open: true, Renewals: 1, Left: 300})
		}, ""},
		"a new leader gives it less": {func(p *play) {
			p.open()
			p.now = 290
			p.elect(2, 3, 2)
			p.shows(2, View{Open: true, Renewals: 1, Left: 150})
		}, "server 2 measures 150 ns"},
		"a leader without a majority":   {func(p *play) { p.note(p.run.Elect(1, 1, founders)) }, "rule elect"},
		"two votes in one term":         {func(p *play) { p.elect(1, 2, 1); p.note(p.run.Vote(2, 3, 1)) }, "rule elect"},
		"a blank server votes":          {func(p *play) { p.run.Boot(2, true); p.elect(1, 2, 1) }, "rule elect"},
		"a blank server answers":        {func(p *play) { p.elect(1, 3, 1); p.run.Boot(2, true); p.note(p.run.Answer(2, 1, 1, 1, true)) }, "rule answer"},
		"a blank server stores entries": {func(p *play) { p.elect(1, 2, 1); p.run.Boot(3, true); p.log(1, 1) }, "rule replicate"},
		"an entry that nobody proposed": {func(p *play) { p.elect(1, 2, 1); p.note(p.run.Commit(1, 1, 2, 7, founders)) }, "rule replicate"},
		"an entry without a majority": {func(p *play) {
			p.elect(1, 2, 1)
			p.note(p.run.Propose(1, 1, 2, 2, 0, nil))
			p.note(p.run.Commit(1, 1, 2, 2, founders))
		}, "rule replicate"},
		"a server has state and is a voter":   {func(p *play) { p.elect(1, 3, 1); p.run.Boot(2, true); p.note(p.run.Fill(2, 1, founders)) }, "rule rejoin"},
		"a server is taken back":              {func(p *play) { p.elect(1, 3, 1); p.run.Boot(2, true); p.note(p.run.Fill(2, 1, []uint64{1, 3})) }, ""},
		"a client believes for longer":        {func(p *play) { p.open(); p.note(p.session.Believes(201)) }, "rule receive"},
		"a client believes after its time":    {func(p *play) { p.open(); p.now = 200; p.note(p.session.Believes(250)) }, "rule receive"},
		"an answer that nobody has given":     {func(p *play) { p.open(); p.session.Send(2); p.note(p.session.Receive(2)) }, "rule receive"},
		"an open session is said to be over":  {func(p *play) { p.open(); p.note(p.run.Gone(1, p.session)) }, "rule confirm"},
		"a revoked hold is dropped too early": {func(p *play) { p.revoke(299) }, "rule drop"},
		"a revoked hold is dropped":           {func(p *play) { p.revoke(300) }, ""},
		"the log has what no leader shows": {func(p *play) {
			p.open()
			p.shows(1, View{Open: true, Renewals: 1, Silent: true, Recorded: 5, Left: 300})
		}, "shows a session"},
		"a leader stood still": {func(p *play) {
			p.open()
			p.now = 400
			p.note(p.run.Arrive(1, p.session, Renews, 1, 400, true))
			p.now = 100
			p.shows(1, View{Open: true, Renewals: 1, Left: 600})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			c.play(p)
			if said := fmt.Sprint(p.err); (p.err != nil) != (c.objection != "") || !strings.Contains(said, c.objection) && c.objection != "" {
				t.Errorf("%s; want %q", said, c.objection)
			}
		})
	}
}

// revoke revokes a hold of the session, and drops it after a while.
func (p *play) revoke(after int64) {
	p.open()
	p.shows(1, View{Open: true, Renewals: 1, Left: 300, Asked: []uint64{7}})
	p.now += after
	p.log(1, 1, Entry{Op: Drops, Term: 1, Number: 7})
}
