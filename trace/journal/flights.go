package journal

import "github.com/conclave-io/conclave/process"

// flights are the messages on their way to one process each, in the order in which they
// became known.
type flights struct {
	sender []uint32 // the record that sent it, or 0
	ended  []uint32 // the record that ended its way, or 0
	to     []uint16
	about  []uint8 // the type
	fate   []Fate
	mark   []uint32 // tells messages of one step, type and receiver apart

	ends []ending // since they were last taken
}

// ending is the end of a flight.
type ending struct{ flight, record uint32 }

// leave adds the flights of a message that record id sends, to so many receivers.
func (j *Journal) leave(id uint32, m *process.Message, receivers int) {
	typ, mark := j.typeOf(m), markOf(m)
	if m.To != process.None {
		j.fly(id, m.To, typ, mark, Flying)
		return
	}
	for to := process.ID(0); receivers > 0; to++ {
		if to != m.From {
			j.fly(id, to, typ, mark, Flying)
			receivers--
		}
	}
}

func (f *flights) fly(sender uint32, to process.ID, typ uint8, mark uint32, fate Fate) {
	f.sender = append(f.sender, sender)
	f.ended = append(f.ended, 0)
	f.to = append(f.to, uint16(to))
	f.about = append(f.about, typ)
	f.fate = append(f.fate, fate)
	f.mark = append(f.mark, mark)
}

// land ends the flight of a message that comes to an end with the next record. One that
// no record sent is known only now.
func (j *Journal) land(cause uint64, m *process.Message, to process.ID, fate Fate) {
	typ, mark := j.typeOf(m), markOf(m)
	flight := len(j.sender)
	for i := j.firstFlight(cause); i < len(j.sender) && j.sender[i] == uint32(cause) && cause > 0; i++ {
		if j.ended[i] == 0 && j.to[i] == uint16(to) && j.about[i] == typ && j.mark[i] == mark {
			flight = i
			break
		}
	}
	if flight == len(j.sender) {
		j.fly(0, to, typ, mark, Flying)
	}
	id := uint32(len(j.time) + 1)
	j.ended[flight] = id
	j.fate[flight] |= fate
	j.ends = append(j.ends, ending{uint32(flight), id})
}

// copy adds the flight of a message that a link has made from one that a record sent.
func (j *Journal) copy(cause uint32, m *process.Message) {
	j.fly(cause, m.To, j.typeOf(m), markOf(m), Copy)
}

// firstFlight returns the first flight of a record, or the end of all.
func (j *Journal) firstFlight(record uint64) int {
	if record == 0 || record > uint64(len(j.time)) {
		return len(j.sender)
	}
	return int(j.sent[record-1])
}

// markOf returns a fingerprint of what a message carries.
func markOf(m *process.Message) uint32 {
	h := uint64(14695981039346656037)
	mix := func(v uint64) { h = (h ^ v) * 1099511628211; h ^= h >> 29 }
	mix(uint64(m.Term))
	mix(m.Seq)
	mix(m.Clock)
	mix(uint64(m.Fence))
	mix(uint64(m.Value))
	mix(uint64(m.Subject))
	for _, v := range m.Vector {
		mix(v)
	}
	for _, id := range m.IDs {
		mix(uint64(id))
	}
	for _, b := range m.Data {
		mix(uint64(b))
	}
	return uint32(h ^ h>>32)
}
