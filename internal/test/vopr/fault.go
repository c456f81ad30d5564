package vopr

import (
	"errors"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
)

// strike injects a fault.
func (w *world) strike(f faults.Fault) {
	if w.healed {
		return
	}
	w.stats.Faults++
	w.note(string(f.Kind), uint64(f.Who), uint64(f.For))
	switch f.Kind {
	case faults.Outage:
		for _, s := range w.servers {
			w.strikeServer(f, s, faults.Crash)
		}
	case faults.Storm:
		w.storm = &f
		w.after(f.For*ms, func() {
			if w.storm == &f {
				w.storm = nil
			}
		})
	case faults.Split:
		side := endpoint(f.Arg)&0xff | endpoint(f.Arg)>>8<<clientBit
		w.sever(f.For*ms, &cut{side, ^side}, &cut{^side, side})
	case faults.Sever:
		if a, b := w.target(f.Who), w.target(int(f.Arg)); a != nil && a != b {
			w.sever(f.For*ms, &cut{a.endpoint(), b.endpoint()}, &cut{b.endpoint(), a.endpoint()})
		}
	case faults.Join, faults.Remove, faults.Promote, faults.Resign:
		w.reshape(f)
	case faults.End:
		w.dismiss(w.clients[max(f.Who, 0)%len(w.clients)])
	case faults.Nap, faults.Die, faults.Away, faults.Stuck, faults.Flood, faults.Unread, faults.Theft:
		w.strikeClient(f, w.clients[max(f.Who, 0)%len(w.clients)])
	default:
		if f.Kind == faults.Drift && f.Who >= 16 {
			c := w.clients[f.Who%len(w.clients)]
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
func (w *world) target(who int) *server {
	if leader := w.leader(); who < 0 && leader != nil {
		return leader
	}
	var present []*server
	for _, s := range w.servers {
		if !s.removed {
			present = append(present, s)
		}
	}
	if len(present) == 0 {
		return nil
	}
	return present[max(who, 0)%len(present)]
}

func (w *world) strikeServer(f faults.Fault, s *server, kind faults.Kind) {
	me := s.endpoint()
	switch kind {
	case faults.Crash:
		if f.Arg&1 > 0 && s.on {
			s.disk.fuse = true
		} else {
			s.crash()
		}
		if kind != f.Kind && f.Arg&2 > 0 {
			s.slowness = f.For * ms
		}
		w.hold(s, f.For*ms)
	case faults.Boot:
		w.bootSlowly(f, s)
	case faults.Empty:
		w.empty(f, s)
	case faults.Pause:
		if s.on && !s.paused {
			s.pause()
			life := s.life
			w.after(f.For*ms, func() {
				if s.life == life {
					s.resume()
				}
			})
		}
	case faults.Freeze:
		w.freeze(s, f.For*ms)
	case faults.Leave:
		if w.hosts != nil {
			w.hosts.leave(s, f)
		}
	case faults.Isolate:
		w.sever(f.For*ms, &cut{me, everybody}, &cut{everybody, me})
	case faults.Deafen:
		w.sever(f.For*ms, &cut{allServers, me})
	case faults.Mute:
		w.sever(f.For*ms, &cut{me, allServers})
	case faults.Strand:
		w.sever(f.For*ms, &cut{me, allServers}, &cut{allServers, me})
	case faults.Narrow:
		s.narrow += f.Arg * ms
		w.after(f.For*ms, func() { s.narrow = max(0, s.narrow-f.Arg*ms) })
	case faults.Slow:
		s.disk.slow += 20
		w.after(f.For*ms, func() { s.disk.slow = max(0, s.disk.slow-20) })
	case faults.Hang:
		s.disk.hung++
		w.after(f.For*ms, s.disk.release)
	case faults.Full:
		s.disk.full = true
		w.hold(s, f.For*ms)
		w.after(f.For*ms, func() { s.disk.full = false })
	case faults.Drift:
		s.clock.Turn(w.now, f.Arg)
	case faults.Jump:
		s.wall += f.Arg * ms
	}
}

// freeze stops a server and its clock, like a paused virtual machine.
func (w *world) freeze(s *server, d int64) {
	if !s.on || s.paused {
		return
	}
	s.pause()
	life, shown := s.life, s.now()
	w.after(d, func() {
		if s.life == life && s.paused {
			s.clock.Since, s.clock.Base = w.now, shown
			s.resume()
		}
	})
}

// hold keeps a server down for a while if it is down, and then starts it.
func (w *world) hold(s *server, d int64) {
	s.held++
	w.after(d, func() {
		if s.held > 0 {
			s.held--
		}
		w.raise(s)
	})
}

// raise starts a server if no fault keeps it down. A server with a full disk still runs if it has
// not written since the disk became full.
func (w *world) raise(s *server) {
	if s.held == 0 {
		s.disk.full = false
		s.start()
	}
}

func (w *world) strikeClient(f faults.Fault, c *client) {
	me := c.endpoint()
	switch f.Kind {
	case faults.Die:
		c.die()
	case faults.Nap:
		if !c.dead && !c.paused {
			c.paused = true
			life := c.life
			w.after(f.For*ms, func() {
				if c.life == life {
					c.resume()
				}
			})
		}
	case faults.Away:
		w.sever(f.For*ms, &cut{me, allServers}, &cut{allServers, me})
		if f.Arg > 0 {
			w.after((f.For+f.Arg)*ms, func() {
				if !w.healed {
					w.sever(2*c.ttl, &cut{me, allServers}, &cut{allServers, me})
				}
			})
		}
	case faults.Flood:
		c.flood(int(f.Arg))
		if w.plan.Shared { // also those that share a name, and one that does not
			for _, other := range w.clients[:sharers+1] {
				if other != c {
					other.flood(int(f.Arg))
				}
			}
		}
	case faults.Unread:
		c.flood(int(f.Arg))
		c.turnAway(f.For * ms)
	case faults.Theft:
		c.steal(f.Arg)
	case faults.Stuck:
		if s := w.target(int(f.Arg%8) - 1); s != nil {
			w.sever(f.For*ms, &cut{me, s.endpoint()}, &cut{s.endpoint(), me})
		}
	}
}

// heal ends all faults. Clocks keep their errors.
func (w *world) heal() {
	w.healed, w.cuts, w.storm = true, nil, nil
	w.note("heal", 0, 0)
	for _, s := range w.servers {
		s.held, s.narrow, s.disk.slow, s.disk.full, s.disk.fuse = 0, 0, 0, false, false
		s.resume()
		for s.disk.hung > 0 {
			s.disk.release()
		}
		s.start()
	}
	for _, c := range w.clients {
		c.turnBack()
		c.resume()
	}
	if w.guards != nil {
		w.guards.heal()
	}
	if w.rules != nil {
		w.rules.heal()
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
	// operatorName is the authenticated name of the operator.
	operatorName = "cert:operator"
)

// reshape starts a change of the members, if none is in progress.
func (w *world) reshape(f faults.Fault) {
	s := w.target(f.Who)
	if s == nil || w.asking != nil || w.anyLost() && f.Kind != faults.Resign {
		return
	}
	present := 0
	for _, other := range w.servers {
		if !other.removed {
			present++
		}
	}
	switch {
	case f.Kind == faults.Resign:
		if leader := w.leader(); leader != nil {
			leader.receive(func() { leader.replica.Resign() })
			w.handsOver(leader, leader.replica.Term())
		}
		return
	case f.Kind == faults.Join && present <= w.plan.Servers && len(w.servers) < mostServer:
		said := (&server{w: w, id: uint64(len(w.servers)) + 1}).said()
		said.ID, said.UID = 0, w.drawUID()
		if f.Arg%3 == 0 {
			said.Standing = registry.Learner
		}
		w.asking = &replica.Change{Kind: replica.Join, Server: said}
	case f.Kind == faults.Remove && present > 2:
		w.asking = &replica.Change{Kind: replica.Remove, ID: s.id}
	case f.Kind == faults.Promote:
		w.asking = &replica.Change{Kind: replica.Promote, ID: s.id}
	default:
		return
	}
	w.until, w.wish = w.now+asksFor, f
	w.ask()
}

// dismiss asks the leader twice to end the session of a client.
func (w *world) dismiss(c *client) {
	s, leader := c.session(), w.leader()
	if leader == nil || s == nil {
		return
	}
	s.dismissed = true
	w.stats.Dismissed++
	w.numbers++
	conn := w.numbers
	end := registry.Command{Op: registry.OpEnd, Session: s.id, Value: dismissed, By: &registry.Origin{Actor: operatorName, Request: [16]byte{0: 2, 15: byte(conn)}}}
	leader.receive(func() { leader.replica.Submit(leader.tellTime(), conn, []registry.Command{end, end}) })
}

// ask repeats the request to the leader.
func (w *world) ask() {
	change := w.asking
	if change == nil || w.now > w.until {
		w.doubtful = w.doubtful || change != nil && change.Kind == replica.Remove
		w.asking = nil
		return
	}
	if leader := w.leader(); leader != nil {
		leader.receive(func() {
			if w.asking == change {
				id, done, err := leader.replica.Change(leader.tellTime(), *change)
				w.answerTo(leader, id, done, err)
			}
		})
	}
	w.after(askPeriod, w.ask)
}

func (w *world) answerTo(by *server, id uint64, done bool, err error) {
	switch {
	case err != nil && !errors.Is(err, agreement.ErrNotLeader):
		w.tell("the change is refused: %v", err)
		w.asking = nil
	case done:
		w.tell("the change of server %d is made", id)
		w.stats.Changes++
		kind := w.asking.Kind
		if kind == replica.Join {
			w.welcomeServer(id, w.asking.Server.UID, by.told())
		}
		w.asking = nil
		if kind == replica.Remove && w.wish.Arg > 0 && !w.healed {
			w.takeAway(w.servers[id-1])
		}
	}
}

// takeAway takes away a server whose removal was just confirmed. At once the power fails, and if the
// others can do without it, one of them loses its disk.
func (w *world) takeAway(removed *server) {
	w.stats.TakenAway++
	if !removed.removed {
		removed.retire()
	}
	emptied := w.target(max(w.wish.Who, 0))
	may := w.mayEmpty(emptied)
	for _, s := range w.servers {
		if !s.removed {
			s.crash()
			w.hold(s, w.wish.Arg*ms)
		}
	}
	if may {
		emptied.lose()
	}
}

// welcomeServer starts a server that joined, with an empty disk.
func (w *world) welcomeServer(id, uid uint64, told []uint64) {
	for uint64(len(w.servers)) < id {
		s := w.addServer()
		s.removed = s.id != id // the id may belong to a server that never started
	}
	s := w.servers[id-1]
	s.disk.uid, s.joined, s.peers = uid, true, told
	s.start()
}
