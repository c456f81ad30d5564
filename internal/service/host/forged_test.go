package host

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/process"
)

// forger lets the second member of a world send messages to the first one that no correct
// member sends.
type forger struct {
	*world
	random *rand.Rand
}

func newForger(w *world, seed uint64) *forger {
	w.cutter = &cutter{random: rand.New(rand.NewPCG(1, 1)), asked: make(map[cutKey]string)}
	for range 300 {
		w.round()
	}
	return &forger{w, rand.New(rand.NewPCG(seed, 9))}
}

// send sends a message of an algorithm in a frame. It reports whether the victim still
// takes part. The message may end that, but must not end the server.
func (f *forger) send(t *testing.T, spec *process.Spec, m *process.Message, in frame) bool {
	t.Helper()
	from, to := f.servers[1].host, f.servers[0].host
	if from.member.Rank() == process.None || to.member.Rank() == process.None {
		return true
	}
	m.From, m.To = from.member.Rank(), to.member.Rank()
	in.message = process.NewCodec(spec, len(from.member.Members)).Append(nil, m)
	from.links.send(m.To, &in)
	f.carryOut(f.servers[1])
	f.round()
	to.Status()
	return to.Err() == nil
}

// number is one that is likely to be beyond what a machine expects.
func (f *forger) number() uint64 {
	return []uint64{0, 1, 2, 3, 5, 1 << 40, ^uint64(0)}[f.random.IntN(7)]
}

// message is one that the codec of an algorithm takes.
func (f *forger) message(spec *process.Spec) *process.Message {
	layer := uint8(f.random.IntN(spec.Depth()))
	types := spec.Layer(layer).Messages
	kind := f.random.IntN(len(types))
	set := types[kind].FieldSet()
	m := &process.Message{Layer: layer, Type: process.Type(kind + 1)}
	if set.Has(process.FieldSubject) {
		m.Subject = process.ID(f.random.IntN(4) - 1)
	}
	for i, at := range [...]*uint64{(*uint64)(&m.Term), &m.Seq, &m.Clock, (*uint64)(&m.Fence)} {
		if set.Has(process.FieldTerm + process.Field(i)) {
			*at = f.number()
		}
	}
	if set.Has(process.FieldValue) {
		m.Value = int64(f.number())
	}
	for range f.random.IntN(8) {
		if set.Has(process.FieldVector) {
			m.Vector = append(m.Vector, f.number())
		}
		if set.Has(process.FieldIDs) {
			m.IDs = append(m.IDs, process.ID(f.random.IntN(4)-1))
		}
	}
	return m
}

// I9: a member sends messages that the codec accepts but that no machine expects. They
// may end the host of the victim, and never the server.
func TestForgedMessages(t *testing.T) {
	failed := 0
	ended := func(f *forger) {
		var where runtime.Error
		if err := f.servers[0].host.Err(); errors.As(err, &where) {
			failed++
		}
	}
	for _, spec := range served.Locks {
		for seed := range uint64(10) {
			f := newForger(newWorld(seed, spec, 3, false), seed)
			for range 30 {
				if !f.send(t, spec, f.message(spec), frame{kind: frameLock, name: []byte("a/1")}) {
					break
				}
			}
			ended(f)
		}
	}
	for i, e := range served.Elections {
		stack := served.Detectors[i%len(served.Detectors)].Name + "+" + e.Name
		for seed := range uint64(10) {
			w := watched(t, stack, "delay=2000")
			w.tells = false
			f := newForger(w, seed)
			spec := f.servers[1].host.watch.stack.in.prefix.spec
			for range 30 {
				if !f.send(t, spec, f.message(spec), frame{kind: frameSystem}) {
					break
				}
			}
			ended(f)
		}
	}
	t.Logf("%d ended at a machine that failed", failed)
	if failed == 0 {
		t.Error("no message has a machine fail: they do not test much")
	}
}

// A member sends markers of cuts that the victim, or no member, has asked for. They are
// refused, and the victim continues.
func TestForgedMarkers(t *testing.T) {
	for _, of := range []process.ID{0, process.None} {
		f := newForger(newWorld(1, served.Lock("suzuki-kasami"), 3, false), 1)
		for seq := range uint64(3) {
			marker := process.Message{Type: cutMarker, Subject: of, Seq: 70 + seq}
			if !f.send(t, globalstate.Spec, &marker, frame{kind: frameCut, name: []byte("a/")}) {
				t.Fatalf("a marker of rank %d: %v", of, f.servers[0].host.Err())
			}
		}
		if open := f.servers[0].host.cuts.open; len(open) > 0 || f.servers[0].host.member.Rank() != 0 {
			t.Errorf("a marker of rank %d begins %v", of, open)
		}
	}
}
