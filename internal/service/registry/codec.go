package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Batch is the content of one log entry: commands, and two clock readings in
// nanoseconds.
type Batch struct {
	// Time is the replicated time: the sum of what the leaders' monotonic clocks have measured
	// since the cluster was founded. The waiting times of candidates are measured by it.
	Time int64
	// Wall is the wall clock of the leader, in ns since 1970. People read it; nothing
	// is decided by it.
	Wall     int64
	Commands []Command
}

// Append appends the encoded batch to b, in the format of a level. The version of
// the format comes first, so that a server refuses an entry that it would misread.
func (batch *Batch) Append(b []byte, level uint32) []byte {
	format := version.At(level).Entry
	b = append(b, format)
	b = wire.AppendInt(b, batch.Time)
	b = wire.AppendInt(b, batch.Wall)
	b = wire.AppendUint(b, uint64(len(batch.Commands)))
	for i := range batch.Commands {
		b = batch.Commands[i].append(b, format)
	}
	return b
}

// entryKeeps is the first format in which requests list the holds that their callers keep.
var entryKeeps = version.At(version.Keeps).Entry

// entryGuarded is the first format with operations about seats and guards.
var entryGuarded = version.At(version.Guarded).Entry

// entryAccess is the first format with operations about rules and recorded acts.
var entryAccess = version.At(version.Access).Entry

// entrySettings is the first format with changes of settings.
var entrySettings = version.At(version.Settings).Entry

// DecodeBatch reads what Append wrote. The result shares no memory with data.
func DecodeBatch(data []byte) (batch Batch, err error) {
	err = batch.Decode(data)
	return batch, err
}

// Decode reads what Append wrote into batch, and reuses the memory of its previous commands.
func (batch *Batch) Decode(data []byte) error {
	clear(batch.Commands)
	*batch = Batch{Commands: batch.Commands[:0]}
	r := wire.NewReader(data)
	format := r.Byte()
	if r.Err() == nil {
		if err := version.CheckFormat("log entry", format, func(f version.Formats) byte { return f.Entry }); err != nil {
			return err
		}
	}
	batch.Time, batch.Wall = r.Int(), r.Int()
	n := r.Count()
	batch.Commands = slices.Grow(batch.Commands, min(n, 4096))
	for range n {
		if r.Err() != nil {
			break
		}
		batch.Commands = append(batch.Commands, Command{})
		readCommand(r, &batch.Commands[len(batch.Commands)-1], format)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("log entry is damaged: %w", err)
	}
	return nil
}

func (c *Command) append(b []byte, format byte) []byte {
	b = append(b, byte(c.written()))
	switch c.Op {
	case OpExpire, OpSilence:
		return c.appendVerdicts(b)
	case OpMember:
		return c.Origin().append(c.member().append(b))
	case OpDrop:
		return c.appendClaims(b)
	case OpOvertake:
		return wire.AppendBytes(b, c.Name)
	case OpTime:
		return b
	case OpEnd:
		return c.Origin().append(wire.AppendBytes(append(b, c.Session[:]...), c.Value))
	case OpGuard:
		return c.appendGuardOp(b)
	case OpExpect:
		b = wire.AppendBytes(append(b, byte(c.Class)), c.Name)
		return c.Origin().append(wire.AppendInt(b, c.Every))
	case OpAccess:
		return c.Origin().append(c.change().Append(b))
	case OpNote, OpSet:
		return c.Origin().append(wire.AppendBytes(wire.AppendBytes(b, c.Name), c.Value))
	case OpLevel:
		b = wire.AppendUint(b, uint64(c.From))
		b = wire.AppendUint(b, uint64(c.To))
		return c.Origin().append(wire.AppendBool(b, c.Stay))
	}
	b = append(b, c.Session[:]...)
	b = wire.AppendUint(b, c.Sequence)
	b = wire.AppendUint(b, c.Low)
	return c.appendOperands(b, format)
}

func (c *Command) appendOperands(b []byte, format byte) []byte {
	switch c.Op {
	case OpOpen:
		b = wire.AppendInt(b, c.TTL)
		b = wire.AppendBytes(b, c.Host)
		b = wire.AppendInt(b, c.PID)
		b = wire.AppendBytes(b, c.Program)
		b = wire.AppendBytes(b, c.Owner)
	case OpAcquire:
		b = c.appendAcquire(b, format)
	case OpRevoke:
		b = append(b, byte(c.Class))
		b = wire.AppendBytes(b, c.Name)
		b = wire.AppendUint(b, c.Fence)
		b = wire.AppendBytes(b, c.Value)
		b = c.Origin().append(b)
	case OpRelease:
		b = wire.AppendUint(b, c.Hold)
		if format >= entryLinger {
			b = wire.AppendBool(b, c.Unused)
		}
	case OpCancel:
		b = wire.AppendUint(b, c.Hold)
	case OpUpdate, OpTransfer:
		b = wire.AppendUint(b, c.Hold)
		b = wire.AppendBytes(b, c.Value)
	case OpClose:
		b = c.appendHeir(b)
	case OpEnter, OpTurn, OpQuiet:
		b = c.appendSeatOp(b)
	}
	return b
}

func (c *Command) appendAcquire(b []byte, format byte) []byte {
	b = append(b, byte(c.Class))
	b = wire.AppendBytes(b, c.Name)
	b = wire.AppendBool(b, c.Try)
	b = wire.AppendUint(b, uint64(c.Limit))
	b = wire.AppendBool(b, c.Shared)
	b = wire.AppendBytes(b, c.Value)
	b = wire.AppendInt(b, c.Priority)
	b = wire.AppendInt(b, c.Patience)
	if format >= entryKeeps {
		b = appendKeeps(b, c.Keeps)
	}
	if format >= entryLinger {
		b = wire.AppendInt(b, c.AtLeast)
		b = wire.AppendInt(b, c.LossDelay)
	}
	return b
}

func (c *Command) appendVerdicts(b []byte) []byte {
	b = wire.AppendUint(b, c.Term)
	b = wire.AppendUint(b, uint64(len(c.Verdicts)))
	for _, verdict := range c.Verdicts {
		b = append(b, verdict.Session[:]...)
		b = wire.AppendUint(b, verdict.Renewals)
		b = wire.AppendInt(b, verdict.Remaining)
	}
	return b
}

func (c *Command) appendClaims(b []byte) []byte {
	b = wire.AppendUint(b, c.Term)
	b = wire.AppendUint(b, uint64(len(c.Claims)))
	for _, id := range c.Claims {
		b = append(b, id.Session[:]...)
		b = wire.AppendUint(b, id.Sequence)
	}
	return b
}

// readCommand reads into an empty command, because commands are large.
func readCommand(r *wire.Reader, c *Command, format byte) {
	readOp(r, c, format)
	switch c.Op {
	case OpExpire, OpSilence:
		readVerdicts(r, c)
		return
	case OpMember:
		c.Member = new(readMember(r))
		c.By = readBy(r)
		return
	case OpDrop:
		readClaimIDs(r, c)
		return
	case OpOvertake:
		c.Class, c.Name = Election, r.String()
		return
	case OpTime:
		return
	case OpGuard:
		readGuardOp(r, c)
		return
	case OpEnd, OpExpect, OpAccess, OpNote, OpSet:
		readAct(r, c)
		return
	case OpLevel:
		c.From, c.To, c.Stay = r.Uint32(), r.Uint32(), r.Bool()
		c.By = readBy(r)
		return
	}
	r.Fixed(c.Session[:])
	c.Sequence = r.Uint()
	c.Low = r.Uint()
	readOperands(r, c, format)
}

func readOperands(r *wire.Reader, c *Command, format byte) {
	switch c.Op {
	case OpOpen:
		c.TTL = r.Int()
		c.Host = r.String()
		c.PID = r.Int()
		c.Program = r.String()
		c.Owner = r.String()
	case OpRenew:
	case OpClose:
		readHeir(r, c)
	case OpAcquire:
		readAcquire(r, c, format)
	case OpRevoke:
		c.Class = Class(r.Byte())
		c.Name = r.String()
		c.Fence = r.Uint()
		c.Value = r.String()
		c.By = readBy(r)
	case OpRelease:
		c.Hold = r.Uint()
		if format >= entryLinger {
			c.Unused = r.Bool()
		}
	case OpCancel:
		c.Hold = r.Uint()
	case OpUpdate, OpTransfer:
		c.Hold = r.Uint()
		c.Value = r.String()
	case OpEnter, OpTurn, OpQuiet:
		readSeatOp(r, c)
	default:
		r.Fail(fmt.Errorf("unknown operation %d", c.Op))
	}
}

func readAcquire(r *wire.Reader, c *Command, format byte) {
	c.Class = Class(r.Byte())
	c.Name = r.String()
	c.Try = r.Bool()
	c.Limit = readLimit(r)
	c.Shared = r.Bool()
	c.Value = r.String()
	c.Priority = r.Int()
	c.Patience = r.Int()
	if format >= entryKeeps {
		c.Keeps = readKeeps(r)
	}
	if format >= entryLinger {
		c.AtLeast, c.LossDelay = r.Int(), r.Int()
	}
}

func readLimit(r *wire.Reader) uint32 {
	v := r.Uint()
	if v > MaxLimit {
		r.Fail(fmt.Errorf("limit %d is over %d", v, MaxLimit))
	}
	return uint32(v)
}

func readVerdicts(r *wire.Reader, c *Command) {
	c.Term = r.Uint()
	n := r.Count()
	for range n {
		if r.Err() != nil {
			return
		}
		var verdict Verdict
		r.Fixed(verdict.Session[:])
		verdict.Renewals = r.Uint()
		verdict.Remaining = r.Int()
		c.Verdicts = append(c.Verdicts, verdict)
	}
}

func readClaimIDs(r *wire.Reader, c *Command) {
	c.Term = r.Uint()
	n := r.Count()
	for range n {
		if r.Err() != nil {
			return
		}
		var id ClaimID
		r.Fixed(id.Session[:])
		id.Sequence = r.Uint()
		c.Claims = append(c.Claims, id)
	}
}

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
	case c.Op.ForGuards() && format < entryGuarded, c.Op.ForAccess() && format < entryAccess, c.Op == OpSet && format < entrySettings, c.Op == OpExpect && format < entryLinger:
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
