package peering

// Bounds limit what may wait to be sent to one peer.
type Bounds struct {
	// Messages and Bytes bound the messages. An empty queue takes a message of any size.
	Messages, Bytes int
	// Notes bounds the notes.
	Notes int
	// Quiet is the time after a report in which no further loss is reported, in ns.
	Quiet int64
}

// Outgoing decides what is sent to a peer on the connection for messages: in which order,
// what is dropped, and when losses are reported. M is a message of raft, and N a note, which
// may get lost. Messages leave in the order in which they were offered, each at most once, and
// only on the connection that was there then. Without a connection Outgoing holds nothing.
type Outgoing[M, N any] struct {
	bounds    Bounds
	up        bool
	introduce bool
	notes     []N
	messages  []sized[M]
	first     int // of messages, that is still there
	bytes     int // of messages, about
	lost      bool
	told      bool // a loss was reported, at toldAt
	toldAt    int64
}

type sized[M any] struct {
	message M
	size    int
}

// NewOutgoing returns an Outgoing without a connection.
func NewOutgoing[M, N any](b Bounds) Outgoing[M, N] { return Outgoing[M, N]{bounds: b} }

// Connected tells whether there is a connection now. Messages that wait are lost: they are
// not sent to whatever server the peer is after the next handshake.
func (o *Outgoing[M, N]) Connected(up bool) {
	o.lost = o.lost || o.waiting() > 0 || !up
	o.up, o.bytes = up, 0
	clear(o.messages)
	clear(o.notes)
	o.messages, o.first, o.notes = o.messages[:0], 0, o.notes[:0]
}

// Up reports whether there is a connection.
func (o *Outgoing[M, N]) Up() bool { return o.up }

func (o *Outgoing[M, N]) waiting() int { return len(o.messages) - o.first }

// Offer queues a message of about size bytes, or drops it, and reports whether it was queued.
func (o *Outgoing[M, N]) Offer(m M, size int) bool {
	n := o.waiting()
	if !o.up || n >= o.bounds.Messages || n > 0 && o.bytes+size > o.bounds.Bytes {
		o.lost = true
		return false
	}
	if o.first > 64 && o.first >= n { // reuse the room of those that have left
		kept := copy(o.messages, o.messages[o.first:])
		clear(o.messages[kept:])
		o.messages, o.first = o.messages[:kept], 0
	}
	o.messages = append(o.messages, sized[M]{m, size})
	o.bytes += size
	return true
}

// Note queues a note, or drops it if the peer lags or is not connected.
func (o *Outgoing[M, N]) Note(n N) {
	if o.up && len(o.notes) < o.bounds.Notes {
		o.notes = append(o.notes, n)
	}
}

// Introduce makes this server introduce itself again: now, or when it is connected.
func (o *Outgoing[M, N]) Introduce() { o.introduce = true }

// Lose reports that a message returned by Next was not sent.
func (o *Outgoing[M, N]) Lose() { o.lost = true }

// Item is something to send.
type Item[M, N any] struct {
	Kind    ItemKind
	Message M
	Note    N
}

// ItemKind is what an Item is.
type ItemKind int

// The kinds of Item.
const (
	Nothing ItemKind = iota
	Introduction
	Note
	Message
)

// Next returns the next item to send, and whether more items wait; if not, the caller should
// flush its buffer. An introduction goes first, so that the peer does not judge later
// messages by outdated information.
func (o *Outgoing[M, N]) Next() (item Item[M, N], more bool) {
	switch {
	case !o.up:
		return item, false
	case o.introduce:
		o.introduce, item.Kind = false, Introduction
	case len(o.notes) > 0:
		item.Kind, item.Note = Note, o.notes[0]
		o.notes = append(o.notes[:0], o.notes[1:]...)
	case o.waiting() > 0:
		next := &o.messages[o.first]
		item.Kind, item.Message = Message, next.message
		o.bytes -= next.size
		*next = sized[M]{}
		if o.first++; o.first == len(o.messages) {
			o.messages, o.first = o.messages[:0], 0
		}
	}
	return item, o.introduce || len(o.notes) > 0 || o.waiting() > 0
}

// Report reports whether to log now that messages were lost. If it is too soon after the
// last report, it returns how long to wait, in ns.
func (o *Outgoing[M, N]) Report(now int64) (tell bool, wait int64) {
	if !o.lost {
		return false, 0
	}
	if wait = o.toldAt + o.bounds.Quiet - now; o.told && wait > 0 {
		return false, wait
	}
	o.lost, o.told, o.toldAt = false, true, now
	return true, 0
}
