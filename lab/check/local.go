package check

import (
	"encoding/binary"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// phase is the state of a client.
type phase uint8

const (
	idle phase = iota
	waiting
	inside
)

// local is everything that belongs to one process: its machine, what its host keeps for
// it, and what the properties remember about it. Once it has a number it does not
// change.
type local struct {
	proc  process.ID
	phase phase
	down  bool
	asked uint8 // requests, or calls for an election, so far

	traitors uint16 // it is Byzantine: one of this set of Config.Traitors, from 1
	proposal uint8  // its first proposal, if values have names: its number, from 1

	incarnation uint32
	state       []byte   // of the machine; nil while it is down
	durable     []byte   // what it saved; nil unless processes may come back
	timers      []uint64 // armed, in rising order; see timerKey
	knows       []uint32 // by rank: twice the incarnation heard of, plus 1 if it is known to have crashed; nil without crashes
	now         int64    // readings of the local clock so far, if the machines read one

	leader    process.ID // the leader that it last announced, or None
	term      process.Term
	rounds    uint8         // of a synchronous consensus: number of rounds that it has ended
	decisions uint8         // since it started
	vote      ballot        // in a transaction; a crash does not undo it
	outcome   ballot        // the outcome that it last announced; a crash does not undo it
	reached   bool          // by a message of the algorithm, in an election
	past      []uint8       // by rank: number of requests that happened before its present; nil if not needed
	request   []uint8       // past, as it was at its request
	passed    process.Fence // the largest fence that happened before

	stamp  uint64 // of the present request, as in its messages, or 0; see books
	asking uint64 // the number of the present request, as in its messages, or 0
	token  uint64 // a hash of the token as last sent, or 0
}

// timerKey identifies a timer. Timers of one process are sorted by it.
func timerKey(layer uint8, t process.Timer) uint64 { return uint64(layer)<<32 | uint64(t) }

// copyFrom makes l an independent copy, reusing its slices.
func (l *local) copyFrom(src *local) {
	state, durable, timers := l.state[:0], l.durable[:0], l.timers[:0]
	knows, past, request := l.knows[:0], l.past[:0], l.request[:0]
	*l = *src
	l.state = append(state, src.state...)
	l.durable = append(durable, src.durable...)
	l.timers = append(timers, src.timers...)
	l.knows = append(knows, src.knows...)
	l.past = append(past, src.past...)
	l.request = append(request, src.request...)
}

// clone returns an independent copy.
func (l *local) clone() *local {
	c := &local{}
	c.copyFrom(l)
	return c
}

func (l *local) arm(key uint64) {
	if i, found := slices.BinarySearch(l.timers, key); !found {
		l.timers = slices.Insert(l.timers, i, key)
	}
}

func (l *local) disarm(key uint64) {
	if i, found := slices.BinarySearch(l.timers, key); found {
		l.timers = slices.Delete(l.timers, i, i+1)
	}
}

// appendTo encodes the state. Equal states have equal encodings, and different ones
// different encodings: every list is preceded by its length.
func (l *local) appendTo(dst []byte) []byte {
	dst = append(dst, byte(l.proc), byte(l.proc>>8), byte(l.phase), bit(l.down)|bit(l.reached)<<1|byte(l.vote)<<2|byte(l.outcome)<<4, l.asked, l.rounds, l.decisions, l.proposal)
	for _, v := range [...]uint64{
		uint64(l.traitors), uint64(l.incarnation), uint64(l.now), uint64(l.leader + 1), uint64(l.term), uint64(l.passed), l.stamp, l.asking, l.token,
	} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = binary.AppendUvarint(dst, uint64(len(l.timers)))
	for _, t := range l.timers {
		dst = binary.AppendUvarint(dst, t)
	}
	dst = binary.AppendUvarint(dst, uint64(len(l.knows)))
	for _, k := range l.knows {
		dst = binary.AppendUvarint(dst, uint64(k))
	}
	for _, bytes := range [...][]byte{l.past, l.request, l.durable, l.state} {
		dst = binary.AppendUvarint(dst, uint64(len(bytes)))
		dst = append(dst, bytes...)
	}
	return dst
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// message is a message in flight, or news about a process or an election, with what its
// host and the properties attach to it.
type message struct {
	process.Message
	news        process.Kind // 0: a message; otherwise what the process is told about Subject
	incarnation uint32       // of the sender; of news: of the process spoken of
	addressee   uint32       // the addressed incarnation of the receiver
	past        []uint8      // of the sender; nil if not needed
	passed      process.Fence
}

func (m *message) appendTo(dst []byte) []byte {
	dst = append(dst, byte(m.news))
	dst = binary.AppendUvarint(dst, uint64(m.incarnation))
	dst = binary.AppendUvarint(dst, uint64(m.addressee))
	dst = binary.AppendUvarint(dst, uint64(m.passed))
	dst = append(binary.AppendUvarint(dst, uint64(len(m.past))), m.past...)
	return m.AppendRaw(dst)
}
