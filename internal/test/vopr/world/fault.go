package world

import (
	"errors"
	"slices"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/copies"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/machine"
	"github.com/conclave-io/conclave/internal/test/vopr/network"
)

// strike injects a fault.
func (w *World) strike(f faults.Fault) {
	if w.Healed {
		return
	}
	w.Stats.Faults++
	w.Note(string(f.Kind), uint64(f.Who), uint64(f.For))
	switch f.Kind {
	case faults.Outage:
		for _, s := range w.Servers {
			w.strikeServer(f, s, faults.Crash)
		}
	case faults.Storm:
		w.storm, w.Net.Storm = &f, true
		w.After(f.For*ms, func() {
			if w.storm == &f {
				w.storm, w.Net.Storm = nil, false
			}
		})
	case faults.Split:
		side := network.Endpoint(f.Arg)&0xff | network.Endpoint(f.Arg)>>8<<network.ClientBit
		w.Net.Split(f.For*ms, side, ^side)
	case faults.Sever:
		if a, b := w.target(f.Who), w.target(int(f.Arg)); a != nil && a != b {
			w.Net.Split(f.For*ms, a.Endpoint(), b.Endpoint())
		}
	case faults.Join, faults.Remove, faults.Promote, faults.Resign:
		w.reshape(f)
	case faults.Copy:
		if s := w.target(f.Who); s != nil {
			w.copy(s, f.For*ms)
		}
	case faults.End:
		w.dismiss(w.Clients[max(f.Who, 0)%len(w.Clients)])
	case faults.Nap, faults.Die, faults.Away, faults.Stuck, faults.Flood, faults.Unread, faults.Theft:
		w.strikeClient(f, w.Clients[max(f.Who, 0)%len(w.Clients)])
	default:
		if f.Kind == faults.Drift && f.Who >= 16 {
			c := w.Clients[f.Who%len(w.Clients)]
			c.turnClock(f.Arg)
			return
		}
		if s := w.target(f.Who); s != nil {
			w.strikeServer(f, s, f.Kind)
		}
	}
}

// target returns the server of a fault. It is the leader, or one of the servers that were not
// removed.
func (w *World) target(who int) *Server {
	if leader := w.Leader(); who < 0 && leader != nil {
		return leader
	}
	var present []*Server
	for _, s := range w.Servers {
		if !s.removed {
			present = append(present, s)
		}
	}
	if len(present) == 0 {
		return nil
	}
	return present[max(who, 0)%len(present)]
}

func (w *World) strikeServer(f faults.Fault, s *Server, kind faults.Kind) {
	me := s.Endpoint()
	switch kind {
	case faults.Crash:
		if f.Arg&1 > 0 && s.On {
			s.disk.Fuse = true
		} else {
			s.Crash()
		}
		if kind != f.Kind && f.Arg&2 > 0 {
			s.slowness = f.For * ms
		}
		w.Hold(s, f.For*ms)
	case faults.Boot:
		w.bootSlowly(f, s)
	case faults.Empty:
		w.empty(f, s)
	case faults.Pause:
		if s.On && !s.Paused {
			s.Paused = true
			life := s.Life
			w.After(f.For*ms, func() {
				if s.Life == life {
					s.resume()
				}
			})
		}
	case faults.Freeze:
		w.freeze(s, f.For*ms)
	case faults.Leave:
		if w.Hosts != nil {
			w.Hosts.Leave(s, f)
		}
	case faults.Isolate:
		w.Net.Split(f.For*ms, me, network.Everybody)
	case faults.Deafen:
		w.Net.Sever(f.For*ms, network.Servers, me)
	case faults.Mute:
		w.Net.Sever(f.For*ms, me, network.Servers)
	case faults.Strand:
		w.Net.Split(f.For*ms, me, network.Servers)
	case faults.Narrow:
		s.Narrow += f.Arg * ms
		w.After(f.For*ms, func() { s.Narrow = max(0, s.Narrow-f.Arg*ms) })
	case faults.Slow:
		s.disk.Slow += 20
		w.After(f.For*ms, func() { s.disk.Slow = max(0, s.disk.Slow-20) })
	case faults.Hang:
		s.disk.Hang()
		w.After(f.For*ms, s.release)
	case faults.Full:
		s.disk.Full = true
		w.Hold(s, f.For*ms)
		w.After(f.For*ms, func() { s.disk.Full = false })
	case faults.Drift:
		s.Clock.Turn(w.Now, f.Arg)
	case faults.Jump:
		s.Wall += f.Arg * ms
	}
}

// copy starts a process with a copy of the data of a server. An operator ends it after a time.
func (w *World) copy(s *Server, d int64) {
	if !s.Up() || s.Replica.Blank() {
		return // its data do not show a cluster to which the process could connect
	}
	var peers []uint64
	for _, m := range s.Replica.Members() {
		if m.ID != s.ID && m.PeerAddress != "" && !m.Reserved() {
			peers = append(peers, m.ID)
		}
	}
	w.Stats.Copies++
	c := copies.Start(w.transports, len(w.copies), handler{s}.Hello(0), w.nonces.Uint64()|1, peers)
	w.copies = append(w.copies, c)
	w.After(d, c.End)
}

// yields stops a server because of a copy of its data. An operator starts it again when no copy of it
// runs.
func (w *World) yields(s *Server, why founding.Refusal) {
	const slack = 10_000 * ms // refusals, and how much ages may differ
	if !slices.ContainsFunc(w.copies, func(c *copies.Copy) bool {
		return c.ID == s.ID && c.Admitted && (c.On || w.Now-c.Ended < slack) && (why == founding.Superseded || c.Began < s.began+slack)
	}) {
		w.Violate("copy", "server %d stops because of a copy of its data, and there is none that a server knew before", s.ID)
	}
	s.Crash()
	w.Hold(s, slack)
}

// doubled reports whether a copy of a server has taken its place at another one, or had until lately:
// the server may not know yet that it can connect again.
func (w *World) doubled(id uint64) bool {
	return slices.ContainsFunc(w.copies, func(c *copies.Copy) bool {
		return c.ID == id && c.Admitted && (c.On || w.Now-c.Ended < 8000*ms)
	})
}

// freeze stops a server and its clock, like a paused virtual machine.
func (w *World) freeze(s *Server, d int64) {
	if !s.On || s.Paused {
		return
	}
	s.Paused = true
	life, shown := s.Life, s.Now()
	w.After(d, func() {
		if s.Life == life && s.Paused {
			s.Clock.Since, s.Clock.Base = w.Now, shown
			s.resume()
		}
	})
}

// Hold keeps a server down for a while if it is down, and then starts it.
func (w *World) Hold(s *Server, d int64) {
	s.held++
	w.After(d, func() {
		if s.held > 0 {
			s.held--
		}
		w.raise(s)
	})
}

// raise starts a server if no fault keeps it down. A server with a full disk still runs if it has
// not written since the disk became full.
func (w *World) raise(s *Server) {
	if s.held == 0 {
		s.disk.Full = false
		s.start()
	}
}

func (w *World) strikeClient(f faults.Fault, c *client) {
	me := c.endpoint()
	switch f.Kind {
	case faults.Die:
		c.die()
	case faults.Nap:
		if !c.dead && !c.paused {
			c.paused = true
			life := c.life
			w.After(f.For*ms, func() {
				if c.life == life {
					c.resume()
				}
			})
		}
	case faults.Away:
		w.Net.Split(f.For*ms, me, network.Servers)
		if f.Arg > 0 {
			w.After((f.For+f.Arg)*ms, func() {
				if !w.Healed {
					w.Net.Split(2*c.ttl, me, network.Servers)
				}
			})
		}
	case faults.Flood:
		c.Flood(int(f.Arg))
		if w.Plan.Shared { // also those that share a name, and one that does not
			for _, other := range w.Clients[:sharers+1] {
				if other != c {
					other.Flood(int(f.Arg))
				}
			}
		}
	case faults.Unread:
		c.Flood(int(f.Arg))
		c.turnAway(f.For * ms)
	case faults.Theft:
		c.steal(f.Arg)
	case faults.Stuck:
		if s := w.target(int(f.Arg%8) - 1); s != nil {
			w.Net.Split(f.For*ms, me, s.Endpoint())
		}
	}
}

// heal ends all faults. Clocks keep their errors.
func (w *World) heal() {
	w.Healed, w.Net.Cuts, w.Net.Storm = true, nil, false
	w.Note("heal", 0, 0)
	for _, c := range w.copies {
		c.End()
	}
	for _, s := range w.Servers {
		s.held, s.Narrow, s.disk.Slow, s.disk.Full, s.disk.Fuse = 0, 0, 0, false, false
		s.resume()
		for s.disk.Hangs() {
			s.release()
		}
		s.start()
	}
	for _, c := range w.Clients {
		c.turnBack()
		c.resume()
	}
	if w.Guards != nil {
		w.Guards.Heal()
	}
	if w.rules != nil {
		w.rules.Heal()
	}
}

// operator changes the members of a cluster, as a person does. It asks the leader until the change
// succeeds, is refused, or takes too long.
type operator struct {
	asking *replica.Change
	until  int64
	wish   faults.Fault // what the operator asks for
}

const (
	asksFor    = 15_000 * ms
	askPeriod  = tick
	mostServer = 40 // maximum id in a run
	// OperatorName is the authenticated name of the operator.
	OperatorName = "cert:operator"
)

// reshape starts a change of the members, if none is in progress.
func (w *World) reshape(f faults.Fault) {
	s := w.target(f.Who)
	if s == nil || w.asking != nil || w.anyLost() && f.Kind != faults.Resign {
		return
	}
	present := 0
	for _, other := range w.Servers {
		if !other.removed {
			present++
		}
	}
	switch {
	case f.Kind == faults.Resign:
		if leader := w.Leader(); leader != nil {
			leader.Receive(func() { leader.Replica.Resign() })
			w.handsOver(leader, leader.Replica.Term())
		}
		return
	case f.Kind == faults.Join && present <= w.Plan.Servers && len(w.Servers) < mostServer:
		said := (&Server{w: w, Machine: machine.New(uint64(len(w.Servers))+1, w.Net)}).said()
		said.ID, said.UID = 0, w.drawUID()
		if f.Arg%3 == 0 {
			said.Standing = registry.Learner
		}
		w.asking = &replica.Change{Kind: replica.Join, Server: said}
	case f.Kind == faults.Remove && present > 2:
		w.asking = &replica.Change{Kind: replica.Remove, ID: s.ID}
	case f.Kind == faults.Promote:
		w.asking = &replica.Change{Kind: replica.Promote, ID: s.ID}
	default:
		return
	}
	w.until, w.wish = w.Now+asksFor, f
	w.ask()
}

// dismiss asks the leader twice to end the session of a client.
func (w *World) dismiss(c *client) {
	s, leader := c.session(), w.Leader()
	if leader == nil || s == nil {
		return
	}
	s.dismissed = true
	w.Stats.Dismissed++
	w.numbers++
	conn := w.numbers
	end := registry.Command{Op: registry.OpEnd, Session: s.ID, Value: dismissed, By: &registry.Origin{Actor: OperatorName, Request: [16]byte{0: 2, 15: byte(conn)}}}
	leader.Receive(func() { leader.Replica.Submit(leader.TellTime(), conn, []registry.Command{end, end}) })
}

// ask repeats the request to the leader.
func (w *World) ask() {
	change := w.asking
	if change == nil || w.Now > w.until {
		w.doubtful = w.doubtful || change != nil && change.Kind == replica.Remove
		w.asking = nil
		return
	}
	if leader := w.Leader(); leader != nil {
		leader.Receive(func() {
			if w.asking == change {
				id, done, err := leader.Replica.Change(leader.TellTime(), *change)
				w.answerTo(leader, id, done, err)
			}
		})
	}
	w.After(askPeriod, w.ask)
}

func (w *World) answerTo(by *Server, id uint64, done bool, err error) {
	switch {
	case err != nil && !errors.Is(err, agreement.ErrNotLeader):
		w.Tell("the change is refused: %v", err)
		w.asking = nil
	case done:
		w.Tell("the change of server %d is made", id)
		w.Stats.Changes++
		kind := w.asking.Kind
		if kind == replica.Join {
			w.welcomeServer(id, w.asking.Server.UID, by.told())
		}
		w.asking = nil
		if kind == replica.Remove && w.wish.Arg > 0 && !w.Healed {
			w.takeAway(w.Servers[id-1])
		}
	}
}

// takeAway takes away a server whose removal was just confirmed. At once the power fails, and if the
// others can do without it, one of them loses its disk.
func (w *World) takeAway(removed *Server) {
	w.Stats.TakenAway++
	if !removed.removed {
		removed.retire()
	}
	emptied := w.target(max(w.wish.Who, 0))
	may := w.mayEmpty(emptied)
	for _, s := range w.Servers {
		if !s.removed {
			s.Crash()
			w.Hold(s, w.wish.Arg*ms)
		}
	}
	if may {
		emptied.lose()
	}
}

// welcomeServer starts a server that joined, with an empty disk.
func (w *World) welcomeServer(id, uid uint64, told []uint64) {
	for uint64(len(w.Servers)) < id {
		s := w.addServer()
		s.removed = s.ID != id // the id may belong to a server that never started
	}
	s := w.Servers[id-1]
	s.disk.UID, s.joined, s.peers = uid, true, told
	s.start()
}

// OperatorConn is the connection of the operator who changes guards and rules.
const OperatorConn = 1 << 50
