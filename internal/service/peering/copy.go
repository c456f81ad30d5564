package peering

import (
	"errors"
	"fmt"
	"strings"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

// together is the difference between the ages of two processes, in ns, up to which they count as
// started at the same time. A process states its age in its introduction, which arrives later.
const together = 5e9

// refuse returns why a newcomer is refused whose server has another live process.
func (p *Peer[L]) refuse(self uint64, n *Newcomer[L]) *Refusal {
	known, h := p.known, n.Hello
	if !h.sharesData(known) {
		return Refuse(Duplicate, "two servers have the id %d: one at %s (uid %016x) is connected to server %d, another at %s (uid %016x) wants to be; give each its own id",
			known.Server, known.PeerAddress, known.UID, self, h.PeerAddress, h.UID)
	}
	p.copies++
	p.copied, p.copiedAt = Copy{Server: h.Server, Where: where(h, n.From)}, n.At
	code, order := Copied, "later"
	if !p.startedLater(n) {
		code, order = Superseded, "earlier"
	}
	return Refuse(code, "two processes run with the data of server %d: one at %s is connected to server %d, the other at %s has started %s and is refused; stop the copy and delete its data directory",
		h.Server, where(known, p.from), self, where(h, n.From), order)
}

// startedLater reports whether the process of a newcomer started after that of the peer. All
// servers should say the same. So if the two started at about the same time, the larger nonce
// decides.
func (p *Peer[L]) startedLater(n *Newcomer[L]) bool {
	d := n.At - int64(n.Hello.Age) - p.since
	if -together <= d && d <= together {
		return n.Hello.Nonce > p.known.Nonce
	}
	return d > 0
}

// where names a process for people: the address that it states, and where it comes from.
func where(h Hello, from string) string {
	text := h.PeerAddress
	if from != "" {
		text = fmt.Sprintf("%s (from %s)", text, from)
	}
	return strings.ToValidUTF8(text[:min(len(text), maxWhere)], "")
}

// Other returns the error of a connection that this server dialled, if the peer introduces itself
// there as h while a live connection contradicts it. It may have been started again.
func (p *Peer[L]) Other(h Hello) error {
	if h.sharesData(p.known) {
		return fmt.Errorf("server %d answers as another process than the one at %s, whose connections have not ended yet", h.Server, where(p.known, p.from))
	}
	return fmt.Errorf("server %d answers at %s with uid %016x: a server with this id at %s with uid %016x has connections that have not ended yet",
		h.Server, h.PeerAddress, h.UID, where(p.known, p.from), p.known.UID)
}

// Copies returns the number of newcomers that were refused because they run with the data of
// the peer, while another process does. Last is the last of them; its Ago is relative to now.
func (p *Peer[L]) Copies(now int64) (n uint64, last Copy) {
	last = p.copied
	last.Ago = uint64(max(0, now-p.copiedAt))
	return p.copies, last
}

// Ping is what a ping says beside that its sender is alive.
type Ping struct {
	// Asks is a question, which the receiver sends back to show that it is alive; 0 is none.
	Asks uint64
	// Answers is the last question of the receiver, or 0.
	Answers uint64
}

// Append appends the encoding of p to b: nothing if p says nothing. Releases without questions
// ignore what a ping contains.
func (p Ping) Append(b []byte) []byte {
	if p == (Ping{}) {
		return b
	}
	return wire.AppendUint(wire.AppendUint(b, p.Asks), p.Answers)
}

// DecodePing reads what Append wrote, and skips what follows.
func DecodePing(b []byte) (p Ping, err error) {
	if len(b) == 0 {
		return p, nil
	}
	r := wire.NewReader(b)
	p = Ping{Asks: r.Uint(), Answers: r.Uint()}
	if r.Err() != nil {
		return Ping{}, errors.New("malformed ping: " + r.Err().Error())
	}
	return p, nil
}

// Ping returns what pings to the peer say now. While it says something, the host sends pings on
// all connections at their interval, also on those that carry other frames.
func (p *Peer[L]) Ping() Ping {
	ping := Ping{Answers: p.asked}
	if p.answered < p.question {
		ping.Asks = p.question
	}
	return ping
}

// Pinged takes a ping of the peer, on a connection that counts.
func (p *Peer[L]) Pinged(ping Ping) {
	p.asked = ping.Asks
	if ping.Answers <= p.question {
		p.answered = max(p.answered, ping.Answers)
	}
}
