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

// leave adds the flights of a message that record id sends to a number of receivers.
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

// land ends the flight of a message at the next record. One that no record sent is known
// only now.
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

// Sent is a message as it was sent to one process.
type Sent struct {
	Name     string
	From, To process.ID
	Time     int64
	// Earlier is how many of its name were sent on the same link at the same time before
	// it; Cut, how many of them a partition kept off the link.
	Earlier, Cut int
	Lost         bool // it is lost in this run
}

// Sent returns what a flight is, or false if no record sent it: if a fault put it on the
// link, or the link made it from another.
func (j *Journal) Sent(flight int) (s Sent, ok bool) {
	if flight < 0 || flight >= len(j.sender) || j.sender[flight] == 0 || j.fate[flight]&Copy != 0 {
		return Sent{}, false
	}
	sender := j.sender[flight]
	s = Sent{
		Name: j.nameOf(j.about[flight]), From: process.ID(j.process[sender-1]), To: process.ID(j.to[flight]),
		Time: j.time[sender-1], Lost: j.fate[flight] == Lost,
	}
	for i := flight - 1; i >= 0; i-- {
		other := j.sender[i]
		if other == 0 {
			continue
		}
		if j.time[other-1] < s.Time {
			break
		}
		if j.process[other-1] != j.process[sender-1] || j.to[i] != j.to[flight] || j.fate[i]&Copy != 0 || j.nameOf(j.about[i]) != s.Name {
			continue
		}
		s.Earlier++
		if end := j.ended[i]; end != 0 && j.fate[i] == Lost && j.time[end-1] == s.Time && j.describeHost(end).Note == "partition" {
			s.Cut++
		}
	}
	return s, true
}

// nameOf returns the name of the messages of a type.
func (j *Journal) nameOf(typ uint8) string {
	layer := len(j.types) - 1
	for layer > 0 && j.types[layer] >= int(typ) {
		layer--
	}
	return j.spec.Layer(uint8(layer)).Messages[int(typ)-1-j.types[layer]].Name
}

// Time returns the time of a record; that of 0 is 0.
func (j *Journal) Time(record int) int64 {
	if record == 0 {
		return 0
	}
	return j.time[record-1]
}
