package registry

import (
	"fmt"

	"github.com/conclave-io/conclave/internal/wire"
)

// entryVersion begins every log entry, so that a server refuses one written by
// a newer version instead of reading it wrongly.
const entryVersion = 1

// Batch is the content of one log entry: commands, and the wall clock of the
// leader that wrote them, in nanoseconds since 1970. The clock is for people to
// read; nothing is decided by it.
type Batch struct {
	Time     int64
	Commands []Command
}

// Append appends the encoded batch to b.
func (batch *Batch) Append(b []byte) []byte {
	b = append(b, entryVersion)
	b = wire.AppendInt(b, batch.Time)
	b = wire.AppendUint(b, uint64(len(batch.Commands)))
	for i := range batch.Commands {
		b = batch.Commands[i].append(b)
	}
	return b
}

// DecodeBatch reads what Append wrote. The result shares no memory with data.
func DecodeBatch(data []byte) (Batch, error) {
	r := wire.NewReader(data)
	if v := r.Byte(); r.Err() == nil && v != entryVersion {
		return Batch{}, fmt.Errorf("log entry has version %d, this server knows versions up to %d: upgrade it", v, entryVersion)
	}
	batch := Batch{Time: r.Int()}
	n := r.Count()
	batch.Commands = make([]Command, 0, min(n, 4096))
	for range n {
		if r.Err() != nil {
			break
		}
		batch.Commands = append(batch.Commands, readCommand(r))
	}
	if err := r.Close(); err != nil {
		return Batch{}, fmt.Errorf("log entry is damaged: %w", err)
	}
	return batch, nil
}

func (c *Command) append(b []byte) []byte {
	b = append(b, byte(c.Op))
	switch c.Op {
	case OpExpire, OpSilence:
		return c.appendLeases(b)
	case OpMember:
		b = wire.AppendUint(b, c.Member.ID)
		return wire.AppendUint(b, c.Member.UID)
	}
	b = append(b, c.Session[:]...)
	b = wire.AppendUint(b, c.Sequence)
	b = wire.AppendUint(b, c.Low)
	switch c.Op {
	case OpOpen:
		b = wire.AppendInt(b, c.TTL)
		b = wire.AppendBytes(b, c.Host)
		b = wire.AppendInt(b, c.PID)
		b = wire.AppendBytes(b, c.Program)
	case OpAcquire:
		b = append(b, byte(c.Class))
		b = wire.AppendBytes(b, c.Name)
		b = wire.AppendBool(b, c.Try)
		b = wire.AppendUint(b, uint64(c.Limit))
		b = wire.AppendBytes(b, c.Value)
	case OpRelease, OpCancel:
		b = wire.AppendUint(b, c.Hold)
	case OpUpdate:
		b = wire.AppendUint(b, c.Hold)
		b = wire.AppendBytes(b, c.Value)
	}
	return b
}

func (c *Command) appendLeases(b []byte) []byte {
	b = wire.AppendUint(b, c.Term)
	b = wire.AppendUint(b, uint64(len(c.Leases)))
	for _, lease := range c.Leases {
		b = append(b, lease.Session[:]...)
		b = wire.AppendUint(b, lease.Renewals)
		b = wire.AppendInt(b, lease.Remaining)
	}
	return b
}

func readCommand(r *wire.Reader) Command {
	c := Command{Op: Op(r.Byte())}
	switch c.Op {
	case OpExpire, OpSilence:
		readLeases(r, &c)
		return c
	case OpMember:
		c.Member = Member{ID: r.Uint(), UID: r.Uint()}
		return c
	}
	r.Fixed(c.Session[:])
	c.Sequence = r.Uint()
	c.Low = r.Uint()
	readOperands(r, &c)
	return c
}

func readOperands(r *wire.Reader, c *Command) {
	switch c.Op {
	case OpOpen:
		c.TTL = r.Int()
		c.Host = r.String()
		c.PID = r.Int()
		c.Program = r.String()
	case OpRenew, OpClose:
	case OpAcquire:
		c.Class = Class(r.Byte())
		c.Name = r.String()
		c.Try = r.Bool()
		c.Limit = readLimit(r)
		c.Value = r.String()
	case OpRelease, OpCancel:
		c.Hold = r.Uint()
	case OpUpdate:
		c.Hold = r.Uint()
		c.Value = r.String()
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

func readLeases(r *wire.Reader, c *Command) {
	c.Term = r.Uint()
	n := r.Count()
	for range n {
		if r.Err() != nil {
			return
		}
		var lease Lease
		r.Fixed(lease.Session[:])
		lease.Renewals = r.Uint()
		lease.Remaining = r.Int()
		c.Leases = append(c.Leases, lease)
	}
}
