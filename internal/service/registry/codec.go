package registry

import (
	"fmt"
	"slices"

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
	case OpEnd:
		return c.Origin().append(wire.AppendBytes(append(b, c.Session[:]...), c.Value))
	case OpGuard:
		return c.appendGuardOp(b)
	case OpAccess:
		return c.Origin().append(c.change().Append(b))
	case OpNote:
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
	case OpRevoke:
		b = append(b, byte(c.Class))
		b = wire.AppendBytes(b, c.Name)
		b = wire.AppendUint(b, c.Fence)
		b = wire.AppendBytes(b, c.Value)
		b = c.Origin().append(b)
	case OpRelease, OpCancel:
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

func (o Origin) append(b []byte) []byte {
	b = wire.AppendBytes(b, o.Actor)
	b = wire.AppendBytes(b, o.Via)
	b = wire.AppendBytes(b, o.Remote)
	return append(b, o.Request[:]...)
}

func readOrigin(r *wire.Reader) Origin {
	o := Origin{Actor: r.String(), Via: r.String(), Remote: r.String()}
	r.Fixed(o.Request[:])
	return o
}

func readBy(r *wire.Reader) *Origin {
	if o := readOrigin(r); o != (Origin{}) {
		return &o
	}
	return nil
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
	case OpEnd:
		r.Fixed(c.Session[:])
		c.Value, c.By = r.String(), readBy(r)
		return
	case OpGuard:
		readGuardOp(r, c)
		return
	case OpAccess, OpNote:
		readForAccess(r, c)
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
	case OpRevoke:
		c.Class = Class(r.Byte())
		c.Name = r.String()
		c.Fence = r.Uint()
		c.Value = r.String()
		c.By = readBy(r)
	case OpRelease, OpCancel:
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
