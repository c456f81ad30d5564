package journal

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Sizes of what the columns hold, in bytes.
const (
	RecordSize = 36
	FlightSize = 12
	EndSize    = 8
)

// Flights returns how many flights are known.
func (j *Journal) Flights() int { return len(j.sender) }

// FlightsBefore returns how many flights were known before a record sent its own.
func (j *Journal) FlightsBefore(record int) int {
	if record > len(j.time) {
		return len(j.sender)
	}
	return int(j.sent[record-1])
}

// Same returns how many records from the start are equal in another journal, where known
// are already known to be equal.
func (j *Journal) Same(o *Journal, known int) int {
	if j.spec != o.spec || known == 0 && !bytes.Equal(j.configLine(), o.configLine()) {
		return 0
	}
	from := uint32(0)
	if known > 0 {
		from = j.columns.end[known-1]
	}
	for known < len(j.time) && known < len(o.time) {
		end := j.columns.end[known]
		if end != o.columns.end[known] || !bytes.Equal(j.data[from:end], o.data[from:end]) {
			break
		}
		known, from = known+1, end
	}
	return known
}

// configLine is what the inputs do not say and the machines depend on.
func (j *Journal) configLine() []byte {
	h := fileHeader{Config: *j.config}
	h.Trace.Traitors = j.header.Traitors
	return h.line()
}

// AppendColumns appends the columns of the records from one number to another, both
// included, and of the flights from a number on. Each column is an array of its own in
// little-endian order: time, cause, rules (low and high), row, index at the process,
// process, peer, flags, kind and type of message; then sender, end, receiver, type and
// fate.
func (j *Journal) AppendColumns(b []byte, from, to, flights int) []byte {
	lo, hi := from-1, to
	for _, t := range j.time[lo:hi] {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(t)))
	}
	b = append32(b, j.cause[lo:hi])
	for _, fired := range j.fired[lo:hi] {
		b = binary.LittleEndian.AppendUint32(b, uint32(fired))
	}
	for _, fired := range j.fired[lo:hi] {
		b = binary.LittleEndian.AppendUint32(b, uint32(fired>>32))
	}
	b = append32(append32(b, j.row[lo:hi]), j.index[lo:hi])
	b = append16(append16(append16(b, j.process[lo:hi]), j.peer[lo:hi]), j.flags[lo:hi])
	b = append(append(b, j.kind[lo:hi]...), j.typ[lo:hi]...)

	b = append32(append32(b, j.sender[flights:]), j.ended[flights:])
	b = append(append16(b, j.to[flights:]), j.about[flights:]...)
	for _, fate := range j.fate[flights:] {
		b = append(b, byte(fate))
	}
	return b
}

// AppendEnds appends the ends that became known since they were last taken, of flights
// below a number and after a record: the columns of the flights and of the records. It
// returns how many there are.
func (j *Journal) AppendEnds(b []byte, below, after int) ([]byte, int) {
	var ended, by []uint32
	for _, e := range j.ends {
		if int(e.flight) < below && int(e.record) > after {
			ended, by = append(ended, e.flight), append(by, e.record)
		}
	}
	j.ends = j.ends[:0]
	return append32(append32(b, ended), by), len(ended)
}

func append32(b []byte, column []uint32) []byte {
	for _, v := range column {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func append16[E ~uint16](b []byte, column []E) []byte {
	for _, v := range column {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}
