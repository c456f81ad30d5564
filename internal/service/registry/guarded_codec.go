package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/wire"
)

func (c *Command) appendGuardOp(b []byte) []byte {
	b = appendUse(wire.AppendBytes(append(b, byte(c.Class)), c.Name), c.guarding().Use)
	b = wire.AppendBool(b, c.guarding().Remove)
	b = wire.AppendInt(b, c.guarding().Wait)
	b = wire.AppendBool(b, c.guarding().Force)
	b = wire.AppendUint(b, c.guarding().Change)
	return c.Origin().append(wire.AppendBytes(b, c.Value))
}

func readGuardOp(r *wire.Reader, c *Command) {
	c.Class, c.Name = Class(r.Byte()), r.String()
	c.Guarding = &Guarding{Use: readUse(r), Remove: r.Bool(), Wait: r.Int(), Force: r.Bool(), Change: r.Uint()}
	c.Value, c.By = r.String(), readBy(r)
}

func (c *Command) appendSeatOp(b []byte) []byte {
	switch c.Op {
	case OpEnter:
		b = wire.AppendUint(b, c.guarding().Server)
		b = wire.AppendInt(b, c.TTL)
		b = wire.AppendBytes(b, c.Host)
		return wire.AppendInt(b, c.PID)
	case OpTurn:
		b = wire.AppendUint(wire.AppendUint(b, c.guarding().Epoch), c.guarding().Coordinator)
		return wire.AppendBytes(b, c.Value)
	}
	return wire.AppendUint(wire.AppendUint(b, c.guarding().Epoch), c.guarding().Change)
}

func readSeatOp(r *wire.Reader, c *Command) {
	switch c.Op {
	case OpEnter:
		c.Guarding = &Guarding{Server: r.Uint()}
		c.TTL, c.Host, c.PID = r.Int(), r.String(), r.Int()
	case OpTurn:
		c.Guarding = &Guarding{Epoch: r.Uint(), Coordinator: r.Uint()}
		c.Value = r.String()
	default:
		c.Guarding = &Guarding{Epoch: r.Uint(), Change: r.Uint()}
	}
}

// written returns the number of the operation in entries. An OpClose with an heir has its own,
// so that the format for clients is the same as at lower levels.
func (c *Command) written() Op {
	if c.Op == OpClose && c.guarding().Heir != (view.Seat{}) {
		return opBequeath
	}
	return c.Op
}

func readOp(r *wire.Reader, c *Command, format byte) {
	switch c.Op = Op(r.Byte()); {
	case c.Op.ForGuards() && format < entryGuarded, c.Op.ForAccess() && format < entryAccess:
		r.Fail(fmt.Errorf("unknown operation %d", c.Op))
	case c.Op == opBequeath:
		c.Op, c.Guarding = OpClose, new(Guarding)
	}
}

// appendHeir appends the heir of a seat, if it has one.
func (c *Command) appendHeir(b []byte) []byte {
	if heir := c.guarding().Heir; heir != (view.Seat{}) {
		return appendSeat(b, heir)
	}
	return b
}

func readHeir(r *wire.Reader, c *Command) {
	if c.Guarding == nil {
		return
	}
	if c.Guarding.Heir = readSeatOf(r, r.Uint()); r.Err() == nil && c.Guarding.Heir == (view.Seat{}) {
		r.Fail(errors.New("a seat closes with an heir that is not a seat"))
	}
}

func appendSeat(b []byte, s view.Seat) []byte {
	id := SeatID(s)
	return append(wire.AppendUint(b, s.Server), id[:]...)
}

func readSeatOf(rd *wire.Reader, server uint64) view.Seat {
	var id SessionID
	rd.Fixed(id[:])
	return SeatOf(server, id)
}

func appendSeats(b []byte, seats []view.Seat) []byte {
	b = wire.AppendUint(b, uint64(len(seats)))
	for _, s := range seats {
		b = appendSeat(b, s)
	}
	return b
}

func readSeats(rd *wire.Reader) (seats []view.Seat) {
	each(rd, func() { seats = append(seats, readSeatOf(rd, rd.Uint())) })
	return seats
}

func appendUse(b []byte, u view.Use) []byte {
	return wire.AppendBytes(wire.AppendBytes(b, u.Algorithm), u.Options)
}

func readUse(rd *wire.Reader) view.Use { return view.Use{Algorithm: rd.String(), Options: rd.String()} }

func appendGuarded(b []byte, l *view.Log) []byte {
	b = appendSeats(wire.AppendUint(b, l.Epoch), l.Members)
	b = appendSeats(b, l.Seats)
	b = wire.AppendUint(b, uint64(len(l.Heirs)))
	for _, h := range l.Heirs {
		b = wire.AppendUint(appendSeat(appendSeat(b, h.Of), h.Seat), h.Epoch)
	}
	b = wire.AppendUint(b, l.Coordinator)
	b = appendUse(wire.AppendUint(b, l.Changes), l.Watch)
	b = wire.AppendUint(b, uint64(len(l.Guards)))
	for i := range l.Guards {
		g := &l.Guards[i]
		b = appendUse(wire.AppendBytes(b, g.Prefix), g.Use)
		b = wire.AppendBool(b, g.New)
		if b = wire.AppendUint(b, g.Change); g.Change == 0 {
			continue
		}
		b = wire.AppendBool(appendUse(b, g.Next), g.Remove)
		b = wire.AppendUint(b, uint64(len(g.Quiet)))
		for _, server := range g.Quiet {
			b = wire.AppendUint(b, server)
		}
		b = wire.AppendBool(wire.AppendInt(b, g.Conditions.Wait), g.Conditions.Force)
		b = wire.AppendBytes(wire.AppendBytes(b, g.Conditions.Reason), g.Conditions.By)
	}
	return b
}

func (d *decoder) readGuarded() {
	if !hasGuarded(d.reg.level) {
		return
	}
	l := &guarded{generation: d.reg.generation}
	l.Epoch, l.Members, l.Seats = d.rd.Uint(), readSeats(d.rd), readSeats(d.rd)
	each(d.rd, func() {
		l.Heirs = append(l.Heirs, view.Heir{Of: readSeatOf(d.rd, d.rd.Uint()), Seat: readSeatOf(d.rd, d.rd.Uint()), Epoch: d.rd.Uint()})
	})
	l.Coordinator, l.Changes, l.Watch = d.rd.Uint(), d.rd.Uint(), readUse(d.rd)
	each(d.rd, func() {
		g := view.Guard{Prefix: d.rd.String(), Use: readUse(d.rd), New: d.rd.Bool(), Change: d.rd.Uint()}
		if g.Change != 0 {
			g.Next, g.Remove = readUse(d.rd), d.rd.Bool()
			each(d.rd, func() { g.Quiet = append(g.Quiet, d.rd.Uint()) })
			g.Conditions = view.Conditions{Wait: d.rd.Int(), Force: d.rd.Bool(), Reason: d.rd.String(), By: d.rd.String()}
		}
		l.Guards = append(l.Guards, g)
	})
	if l.empty() {
		return
	}
	l.bytes = len(appendGuarded(nil, &l.Log))
	for _, s := range l.Seats {
		if of := d.reg.sessions[SeatID(s)]; of == nil || of.server != 0 || s.Server == 0 {
			d.rd.Fail(fmt.Errorf("the seat of server %d has no session of its own", s.Server))
		} else {
			of.server = s.Server
		}
	}
	d.reg.guarded = l
}

// checkSeats returns the first broken invariant of seats and members, or nil.
func (st *state) checkSeats(l *view.Log) error {
	for i, s := range l.Members {
		if i > 0 && l.Members[i-1].Server >= s.Server {
			return fmt.Errorf("the members of epoch %d are not in order or not unique", l.Epoch)
		}
	}
	for _, s := range l.Seats {
		if of := st.sessions[SeatID(s)]; of == nil || of.server != s.Server || of.claims.len() > 0 {
			return fmt.Errorf("the seat of server %d has no session, or one that holds something", s.Server)
		}
	}
	for _, h := range l.Heirs {
		if !slices.Contains(l.Seats, h.Seat) || h.Epoch >= l.Epoch {
			return fmt.Errorf("server %d, the heir of a seat of server %d that ended in epoch %d, has no seat", h.Seat.Server, h.Of.Server, h.Epoch)
		}
	}
	return nil
}

// checkGuards returns the first broken invariant of guards and their epoch, given that of fences,
// or nil.
func (h *head) checkGuards(epoch uint64) error {
	l := h.Guarded()
	for i := range l.Guards {
		g := &l.Guards[i]
		switch {
		case i > 0 && l.Guards[i-1].Prefix >= g.Prefix:
			return errors.New("the guards are not in order or not unique")
		case ValidateName(g.Prefix) != "":
			return fmt.Errorf("prefix %s is in the list of guards and has none", quoted(g.Prefix))
		case g.Change > l.Changes || g.Change == 0 && (g.Next != view.Use{} || g.Remove):
			return fmt.Errorf("the guard of %s has the change %d of %d", quoted(g.Prefix), g.Change, l.Changes)
		case !slices.IsSorted(g.Quiet):
			return fmt.Errorf("the quiet members under %s are out of order", quoted(g.Prefix))
		}
	}
	switch {
	case l.Epoch > epoch || l.Turning:
		return fmt.Errorf("epoch %d of the view is not settled: the epoch of the fences is %d", l.Epoch, epoch)
	case h.guarded != nil && !hasGuarded(h.level):
		return fmt.Errorf("level %d has seats or guards", h.level)
	}
	return nil
}
