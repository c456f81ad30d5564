// Package clocks estimates how far the clocks of other servers are ahead and how fast they
// run. It is deterministic, does no I/O and reads no clock: its caller passes in readings
// and messages, and sends the messages that it returns.
//
// Clocks are measured by algorithm/clock/ntp, with the other server as the parent. A round
// has four exchanges, one per second, and keeps the one with the least delay. No clock is
// corrected.
//
// Two clocks matter. Leases are measured by the boot clock, which nobody sets. The drift is
// the difference between the speeds of the boot clocks of two servers: leases are safe while
// it is less than a tenth, the margin of clients. People read the wall clock. A server tells
// how far its wall clock is ahead of its boot clock, so the offset between wall clocks
// follows from the offset between boot clocks.
package clocks

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/conclave-io/conclave/algorithm/clock/ntp"
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/process"
)

const (
	// Margin is the drift that leases tolerate: a client stops relying on a hold when a
	// tenth of the TTL is left.
	Margin = 0.1
	// Notable is the drift that is worth a warning, a tenth of the margin. Clocks that
	// work drift by less than 0.001.
	Notable = Margin / 10

	// interval and burst configure the rounds; there is one exchange per second.
	interval = 4e9
	burst    = 4
	// kept is the number of rounds over which drift is measured, a minute.
	kept = 16
	// stale is the time without an answer after which a server's estimate is dropped.
	stale = 60e9

	version = 1
)

// Reading is a reading of both clocks of this server at the same time, in ns.
type Reading struct {
	Boot int64 // of the clock that nobody sets
	Wall int64 // since 1970
}

// Message is a message to another server.
type Message struct {
	Server uint64
	Data   []byte
}

// Estimate is what is known about the clocks of another server.
type Estimate struct {
	Server uint64
	// Offset is how far its wall clock is ahead, in ns, accurate to Error if the
	// clocks have not changed their speed since the drift was measured.
	Offset, Error int64
	// Drift is how much faster its clock ran than the clock of this server, over Over ns: 0.01
	// means one percent. It is accurate to DriftError. Before the second round Over is 0, and
	// the margin is taken as the bound on the drift.
	Drift, DriftError float64
	Over              int64
}

// Notable reports whether the drift is certainly more than Notable.
func (e *Estimate) Notable() bool { return e.Over > 0 && math.Abs(e.Drift)-e.DriftError > Notable }

// sample is the result of one round.
type sample struct {
	from, to int64 // between which readings of the own boot clock
	offset   int64 // of the boot clocks then
	wrong    int64 // by how much at most
	wall     int64 // how much further the wall clock of the other is ahead
}

// peer is another server.
type peer struct {
	server  uint64
	asks    process.Machine // measures its clock
	answers process.Machine // is measured by it
	due     int64           // when the next round begins
	began   int64           // when the last one began
	run     uint64          // of the other server that answered last, or 0
	mixed   bool            // in this round another run of it has answered
	samples []sample
}

// Clocks estimates the clocks of the other servers for one server. It must not be used by
// two goroutines at the same time.
type Clocks struct {
	run     uint64 // drawn again at each start of the server
	config  process.Config
	codec   *process.Codec
	peers   []*peer // by server
	fx      process.Effects
	message process.Message
	further int64 // how much further the wall clock of the sender of a message is ahead
}

// The ranks of a pair of servers.
const (
	parent process.ID = iota
	child
)

// New returns the estimates of a server that has just started. The run is a random number,
// not 0: answers to an earlier run of the server are ignored.
func New(run uint64) *Clocks {
	c := &Clocks{run: run, config: process.Config{
		N: 2, Topology: process.Topology{Parent: []process.ID{process.None, parent}}, Delay: process.Millisecond,
		Options: []process.OptionValue{{Name: "burst", Value: fmt.Sprint(burst)}, {Name: "interval", Value: fmt.Sprint(int64(interval) / int64(process.Millisecond))}},
	}}
	c.codec = process.NewCodec(ntp.Spec, c.config.N)
	return c
}

// Ask returns the requests that are due.
func (c *Clocks) Ask(now Reading, servers []uint64) (out []Message) {
	for _, server := range servers {
		p := c.peer(server)
		if now.Boot < p.due {
			continue
		}
		ev := process.Event{Kind: process.Fire, Timer: 1, Now: process.Duration(now.Boot)}
		if p.due == 0 {
			ev.Kind = process.Start
		}
		p.began, p.mixed = now.Boot, false
		out = c.step(out, p, p.asks, child, &ev, now, 0)
	}
	return out
}

// peer returns the entry of a server, and creates it if necessary.
func (c *Clocks) peer(server uint64) *peer {
	i, found := slices.BinarySearchFunc(c.peers, server, func(p *peer, s uint64) int { return cmp.Compare(p.server, s) })
	if !found {
		p := &peer{server: server, asks: ntp.Spec.New(child, &c.config), answers: ntp.Spec.New(parent, &c.config)}
		c.peers = slices.Insert(c.peers, i, p)
	}
	return c.peers[i]
}

// Receive takes a message from a server, and returns the answer or the next request.
func (c *Clocks) Receive(now Reading, server uint64, data []byte) (out []Message, err error) {
	r := wire.NewReader(data)
	if v := r.Byte(); r.Err() == nil && v != version {
		return nil, fmt.Errorf("clocks: version is %d, want %d", v, version)
	}
	asker, sender, ahead := r.Uint(), r.Uint(), r.Int()
	body := r.Rest()
	if r.Err() != nil {
		return nil, fmt.Errorf("clocks: %w", r.Err())
	}
	m := &c.message
	if err := c.codec.Decode(body, m); err != nil {
		return nil, fmt.Errorf("clocks: %w", err)
	}
	p := c.peer(server)
	ev := process.Event{Kind: process.Deliver, Message: m, Now: process.Duration(now.Boot)}
	switch {
	case m.From == child && m.To == parent:
		return c.step(nil, p, p.answers, parent, &ev, now, asker), nil
	case m.From != parent || m.To != child || asker != c.run || sender == 0:
		return nil, nil // an answer to an earlier run of this server
	}
	if p.run != sender { // its boot clock may be a different one
		p.run, p.samples, p.mixed = sender, nil, p.run != 0
	}
	c.further = ahead - (now.Wall - now.Boot)
	return c.step(nil, p, p.asks, child, &ev, now, 0), nil
}

// step steps one machine of a pair, and appends the messages that it sends to out.
func (c *Clocks) step(out []Message, p *peer, m process.Machine, self process.ID, ev *process.Event, now Reading, asker uint64) []Message {
	c.fx.Begin(self, nil)
	m.Step(ev, &c.fx)
	for i := range c.fx.Len() {
		switch e := c.fx.At(i); e.Kind {
		case process.EffectSend:
			data := wire.AppendUint([]byte{version}, cmp.Or(asker, c.run))
			data = wire.AppendUint(data, c.run)
			data = wire.AppendInt(data, now.Wall-now.Boot)
			out = append(out, Message{p.server, c.codec.Append(data, c.fx.Message(e))})
		case process.EffectArm:
			p.due = now.Boot + int64(e.Lo)
		case process.EffectAdjust:
			if p.mixed {
				break
			}
			offset, delay := ntp.Measured(m)
			p.add(sample{p.began, now.Boot, int64(offset), int64(delay)/2 + 1, c.further})
		}
	}
	return out
}

// add adds the result of a round.
func (p *peer) add(s sample) {
	if n := len(p.samples); n > 0 && s.to-p.samples[n-1].to > stale {
		p.samples = nil
	}
	if p.samples = append(p.samples, s); len(p.samples) > kept {
		p.samples = slices.Delete(p.samples, 0, 1)
	}
}

// Estimates returns the current estimates of servers that have answered recently, by id.
func (c *Clocks) Estimates(now Reading) (all []Estimate) {
	for _, p := range c.peers {
		if len(p.samples) == 0 {
			continue
		}
		last := p.samples[len(p.samples)-1]
		if now.Boot-last.to > stale {
			continue
		}
		e := Estimate{Server: p.server, Offset: last.offset + last.wall}
		e.measure(p.samples)
		apart := Margin
		if e.Over > 0 {
			apart = math.Abs(e.Drift) + e.DriftError
		}
		e.Error = last.wrong + int64(math.Ceil(apart*float64(now.Boot-last.from)))
		all = append(all, e)
	}
	return all
}

// measure computes the drift from the first and the last round. The change of the offset is
// known to within the sum of both errors, and its duration to within the length of the rounds.
func (e *Estimate) measure(samples []sample) {
	first, last := samples[0], samples[len(samples)-1]
	shortest, longest := float64(last.from-first.to), float64(last.to-first.from)
	if shortest <= 0 {
		return
	}
	change, wrong := float64(last.offset-first.offset), float64(last.wrong+first.wrong)
	low := min((change-wrong)/shortest, (change-wrong)/longest)
	high := max((change+wrong)/shortest, (change+wrong)/longest)
	e.Drift, e.DriftError, e.Over = (low+high)/2, (high-low)/2, last.to-first.to
}
