// Package names is the part of a world in which an operator changes the setting names, and clients ask for
// names in another form than NFC. Its judge requires that no such request gets into the log if its client
// sent it after the change to nfc was answered.
package names

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/settings"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// ms is a millisecond, in ns.
const ms = int64(1e6)

// Every name of another form begins so: with a letter and an accent.
const decomposed = "cafe\u0301/"

// naming is an operator who changes the setting, clients that ask, and the judge.
type naming struct {
	w   *world.World
	rng *rand.Rand
	// changes are all changes that the operator has asked for, by request. in is the last of them in the
	// log, as far as the judge has read it, or nil if that is unknown.
	changes map[[16]byte]*change
	in      *change
	read    uint64 // the last entry
	// sent is when the clients have first transmitted their requests for names in another form.
	sent  map[registry.ClaimID]int64
	names int
}

// change is a change of the setting. told is when it was answered, or 0.
type change struct {
	value string
	told  int64
}

// New returns the part in which the setting changes.
func New(w *world.World) world.Names {
	n := &naming{w: w, rng: rand.New(rand.NewPCG(w.Plan.Seed, 15)), changes: make(map[[16]byte]*change), sent: make(map[registry.ClaimID]int64)}
	w.At(400*ms, n.change)
	w.At(500*ms, n.ask)
	return n
}

// change changes the setting from time to time.
func (n *naming) change() {
	if n.w.Healed {
		return
	}
	n.w.After((100+n.rng.Int64N(2500))*ms, n.change)
	value := settings.NFC
	if n.rng.IntN(3) == 0 {
		value = settings.Any
	}
	request := [16]byte{0: 5, 14: byte(len(n.changes) >> 8), 15: byte(len(n.changes))}
	leader := n.w.Leader()
	if leader == nil {
		return
	}
	n.changes[request] = &change{value: value}
	c := registry.Command{
		Op: registry.OpSet, Name: settings.Names, Value: value,
		By: &registry.Origin{Actor: "local:1/0", Via: "local", Request: request},
	}
	leader.Receive(func() { leader.Replica.Submit(leader.TellTime(), world.OperatorConn, []registry.Command{c}) })
}

// ask makes a client ask for a name from time to time.
func (n *naming) ask() {
	if n.w.Healed {
		return
	}
	n.w.After((10+n.rng.Int64N(200))*ms, n.ask)
	n.asks(n.rng.IntN(len(n.w.Clients)))
}

func (n *naming) asks(slot int) {
	n.names++
	n.w.Clients[slot].Try(fmt.Sprint(decomposed, n.names))
}

// Told implements world.Names. Once the change to nfc is answered, all clients ask at once. Sometimes the leader
// then crashes, so that the next one gets their requests before it knows that the change is committed.
func (n *naming) Told(o registry.Outcome) {
	c := n.changes[o.Session]
	if c == nil || c.told != 0 || o.Result.Code != registry.OK {
		return
	}
	c.told = n.w.Now
	n.w.Stats.Settings++
	if c.value == settings.NFC {
		if leader := n.w.Leader(); n.rng.IntN(4) == 0 && leader != nil {
			n.w.After(n.rng.Int64N(4*ms), func() { n.crash(leader) })
		}
		n.w.After(1+n.rng.Int64N(20*ms), func() {
			for slot := range n.w.Clients {
				n.asks(slot)
			}
		})
	}
}

// crash crashes a server for a while.
func (n *naming) crash(s *world.Server) {
	if s.Well() && !n.w.Healed {
		s.Crash()
		n.w.Hold(s, (100+n.rng.Int64N(3000))*ms)
	}
}

// Asks implements world.Names.
func (n *naming) Asks(id registry.ClaimID, name string) {
	if strings.HasPrefix(name, decomposed) {
		n.sent[id] = n.w.Now
	}
}

// Follow implements world.Names.
func (n *naming) Follow(s *world.Server, to uint64) {
	for index := n.read + 1; index <= to; index++ {
		if e := s.Log.Entry(index); e != nil {
			n.judge(e)
		} else {
			n.in = nil // it came with a snapshot
		}
	}
	n.read = to
}

// judge checks the commands of an entry.
func (n *naming) judge(e *raftpb.Entry) {
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
		return
	}
	batch, err := registry.DecodeBatch(e.GetData())
	if err != nil {
		n.w.Violate("log", "a committed entry is not read: %v", err)
		return
	}
	for i := range batch.Commands {
		switch c := &batch.Commands[i]; c.Op {
		case registry.OpSet:
			n.in = n.changes[c.Origin().Request]
		case registry.OpAcquire:
			sent, other := n.sent[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}]
			if !other {
				continue
			}
			n.w.Stats.Misnamed++
			if n.in != nil && n.in.value == settings.NFC && n.in.told != 0 && sent > n.in.told {
				n.w.Violate("names", "%+q was asked for %d ms after names = nfc was answered, and the request is in the log", c.Name, (sent-n.in.told)/ms)
			}
		}
	}
}
