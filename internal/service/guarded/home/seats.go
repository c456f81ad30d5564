package home

import (
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/version"
)

// seatVersion is the version of the messages about seats, their first byte.
const seatVersion = 1

// Orders are a message of a server to the leader about its seat.
type Orders struct {
	Commands []registry.Command
	Report   replica.Report
}

// OrdersOf returns the message of a host. It has at least one command.
func OrdersOf(commands []registry.Command, r host.Report) Orders {
	return Orders{commands, replica.Report{Seat: commands[0].Session, Epoch: r.Epoch, Reaches: r.Reaches, Complains: r.Complains, Doubts: r.Doubts}}
}

func (o *Orders) Append(b []byte) []byte {
	b = append(b, seatVersion)
	b = append(b, o.Report.Seat[:]...)
	b = wire.AppendUint(b, o.Report.Epoch)
	for _, list := range [...][]uint64{o.Report.Reaches, o.Report.Complains, o.Report.Doubts} {
		b = wire.AppendUint(b, uint64(len(list)))
		for _, server := range list {
			b = wire.AppendUint(b, server)
		}
	}
	return (&registry.Batch{Commands: o.Commands}).Append(b, version.Guarded)
}

// ReadOrders reads what Append wrote.
func ReadOrders(data []byte) (o Orders, err error) {
	r := wire.NewReader(data)
	if v := r.Byte(); r.Err() == nil && v != seatVersion {
		return o, &version.Error{Text: "orders of a seat: unknown version"}
	}
	r.Fixed(o.Report.Seat[:])
	o.Report.Epoch = r.Uint()
	for _, list := range [...]*[]uint64{&o.Report.Reaches, &o.Report.Complains, &o.Report.Doubts} {
		for range r.Count() {
			*list = append(*list, r.Uint())
		}
	}
	rest := r.Rest()
	if err := r.Close(); err != nil {
		return Orders{}, err
	}
	batch, err := registry.DecodeBatch(rest)
	if err != nil {
		return Orders{}, err
	}
	o.Commands = batch.Commands
	return o, nil
}

// AppendAnswers appends the answers of a leader to the commands of a seat, with the fields
// that a host reads.
func AppendAnswers(b []byte, outcomes []registry.Outcome) []byte {
	b = append(b, seatVersion)
	b = wire.AppendUint(b, uint64(len(outcomes)))
	for i := range outcomes {
		o := &outcomes[i]
		b = append(b, o.Session[:]...)
		b = wire.AppendUint(b, o.Sequence)
		b = wire.AppendUint(b, uint64(o.Result.Code))
		b = wire.AppendInt(b, o.Result.Remaining)
		b = wire.AppendBytes(b, o.Result.Message)
	}
	return b
}

// ReadAnswers reads what AppendAnswers wrote.
func ReadAnswers(data []byte) (outcomes []registry.Outcome, err error) {
	r := wire.NewReader(data)
	if v := r.Byte(); r.Err() == nil && v != seatVersion {
		return nil, &version.Error{Text: "answers about a seat: unknown version"}
	}
	for range r.Count() {
		var o registry.Outcome
		r.Fixed(o.Session[:])
		o.Sequence, o.Result.Code = r.Uint(), registry.Code(r.Uint32())
		o.Result.Remaining, o.Result.Message = r.Int(), r.String()
		outcomes = append(outcomes, o)
	}
	return outcomes, r.Close()
}
