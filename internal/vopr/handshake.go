package vopr

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/service/founding"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

const (
	// shakePeriod is how often servers shake hands, and twice that the time after which
	// a connection on which nothing comes counts as broken. The transport of the live
	// server shakes hands when it connects, and again when something has changed.
	shakePeriod = 250 * ms
	silence     = 4 * shakePeriod
)

// hello is how a server introduces itself: what service/transport sends of it.
type hello struct {
	life   int // of the sender
	said   registry.Member
	levels replica.Levels
	says   founding.Answer
}

// contact is another server that this one has shaken hands with.
type contact struct {
	hello hello
	at    int64 // when it was heard last
}

func peerAddress(id uint64) string { return fmt.Sprint("peer-", id) }

// said is what a server says of itself.
func (s *server) said() registry.Member {
	return registry.Member{ID: s.id, UID: s.disk.uid, PeerAddress: peerAddress(s.id), ClientAddress: fmt.Sprint("client-", s.id)}
}

// scheduleHellos has a server shake hands with all others again and again, for what
// gets lost. It forgets connections on which nothing came for long.
func (s *server) scheduleHellos(life int) {
	s.w.after(s.clock.real(shakePeriod), func() {
		if s.life != life {
			return
		}
		if !s.paused {
			s.introduce()
			for _, other := range s.w.servers {
				if c := s.contacts[other.id]; c != nil && s.w.now-c.at > silence {
					s.founding.Lose(other.id)
				}
			}
		}
		s.scheduleHellos(life)
	})
}

// introduce shakes hands with all others that this server knows.
func (s *server) introduce() {
	for _, other := range s.w.servers {
		if other != s && s.knows(other.id) {
			s.greet(other, true)
		}
	}
}

// knows reports whether a server has the address of another: it was told at its start,
// or has it on record.
func (s *server) knows(id uint64) bool {
	return slices.Contains(s.peers, id) || s.up() && slices.ContainsFunc(s.replica.Members(), func(m replica.Member) bool {
		return m.ID == id && m.PeerAddress != "" && !m.Reserved()
	})
}

// greet sends an introduction. Of a directory that is not made yet there is nothing to
// say.
func (s *server) greet(other *server, answer bool) {
	if !s.on || s.disk.uid == 0 {
		return
	}
	h := hello{life: s.life, said: s.said(), levels: s.levels, says: s.founding.Says()}
	h.says.UID = h.said.UID // one that has not read its disk yet is known all the same
	s.w.judge.tells(s, h.says)
	life := other.life
	s.w.packet(s.endpoint(), other.endpoint(), func() {
		if other.life == life {
			other.take(func() { other.greeted(s, h, answer) })
		}
	})
}

// greeted takes an introduction. A connection of an earlier process of the other server
// is closed before one of a later process is served.
func (s *server) greeted(other *server, h hello, answer bool) {
	c := s.contacts[other.id]
	switch {
	case c != nil && c.hello.life > h.life:
		return
	case s.up() && slices.Contains(s.replica.Gone(), other.id):
		s.refuse(other, founding.Removed)
		return
	case s.knows(other.id):
	case s.founding.Takes(h.says):
		s.peers = append(s.peers[:len(s.peers):len(s.peers)], other.id)
	default:
		s.refuse(other, founding.Unknown)
		return
	}
	s.contacts[other.id] = &contact{h, s.w.now}
	s.founding.Hear(other.id, h.says)
	if s.up() {
		s.replica.Met(h.said, h.levels)
	}
	if answer {
		s.greet(other, false)
	}
	s.decide()
}

// refuse tells another server that this one does not talk to it.
func (s *server) refuse(other *server, why founding.Refusal) {
	life := other.life
	s.w.packet(s.endpoint(), other.endpoint(), func() {
		if other.life == life {
			other.take(func() { other.refused(s, why) })
		}
	})
}

func (s *server) refused(by *server, why founding.Refusal) {
	switch stop := s.founding.Refused(by.id, why, len(s.peers)-1, s.served); {
	case stop && why == founding.Removed:
		s.retire()
	case stop:
		s.w.violate("stop", "server %d stops because server %d does not know it", s.id, by.id)
	}
}

// hangUp lets the other servers notice that this one has gone.
func (s *server) hangUp() {
	for _, other := range s.w.servers {
		if life := other.life; other != s && other.on {
			s.w.after(s.w.net.Int64N(50*ms), func() {
				if other.life == life {
					other.take(func() { other.founding.Lose(s.id) })
				}
			})
		}
	}
}
