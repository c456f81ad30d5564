package host

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/process"
)

// The bounds of a link.
const (
	// window bounds the frames, and windowBytes the bytes, that are sent without an
	// acknowledgement.
	window      = 1 << 16
	windowBytes = 4 << 20
	// backlog bounds the bytes that wait. Beyond it the seat is given up (L5).
	backlog = 64 << 20
	// together is the number of frames that share an acknowledgement; a tick sends one for fewer.
	together = 64
)

// link has the frames that this server and another send each other in the present epoch (L1). It
// outlives an epoch: reset begins the next.
type link struct {
	server uint64
	up     bool // frames can be sent

	// Outgoing.
	frames []byte // each with its length before it, one after the other
	ends   []int  // the end of each in frames
	skip   int    // how many of ends were acknowledged
	out    int    // how many of ends were sent on the present lane, or were acknowledged
	acked  uint64 // how many frames of the epoch were acknowledged
	most   uint64 // how many were ever sent

	// Incoming.
	got  uint64 // how many frames were accepted
	told uint64 // how many of these were acknowledged
	owes bool   // an acknowledgement is due

	// The grounds for a complaint about the peer (S7).
	heard  int64  // when the last batch of the epoch came, or when the epoch began
	mark   uint64 // a frame that was not acknowledged at markAt, the newest then; or 0
	markAt int64
	full   int64 // since when the link has had all that its window takes, or 0

	kept kept
}

// kept are the frames of the newest epoch seen that has not begun here (L4).
type kept struct {
	epoch  uint64
	frames []byte
	count  uint64
}

// reset begins an epoch.
func (l *link) reset(now int64) {
	l.heard, l.mark, l.markAt, l.full = now, 0, 0, 0
	l.frames, l.ends, l.skip, l.out, l.acked, l.most = l.frames[:0], l.ends[:0], 0, 0, 0, 0
	l.got, l.told, l.owes = 0, 0, false
}

// add appends a frame.
func (l *link) add(f []byte) {
	l.frames = wire.AppendBytes(l.frames, f)
	l.ends = append(l.ends, len(l.frames))
}

// acknowledge drops the frames up to a number. It returns false if there were not as many.
func (l *link) acknowledge(number uint64) bool {
	if number <= l.acked || number > l.most {
		return number <= l.most
	}
	l.skip += int(number - l.acked)
	l.acked, l.out = number, max(l.out, l.skip)
	if l.skip <= len(l.ends)/2 {
		return true
	}
	dropped := l.start(l.skip)
	l.frames = slices.Delete(l.frames, 0, dropped)
	l.ends = slices.Delete(l.ends, 0, l.skip)
	for i := range l.ends {
		l.ends[i] -= dropped
	}
	l.out, l.skip = l.out-l.skip, 0
	return true
}

// waiting returns how many frames and bytes are not acknowledged.
func (l *link) waiting() (frames, bytes int) {
	return len(l.ends) - l.skip, len(l.frames) - l.start(l.skip)
}

// crowded reports whether the link is over half full (L5).
func (l *link) crowded() bool {
	frames, bytes := l.waiting()
	return frames > window/2 || bytes > windowBytes/2
}

// start returns the start of the frame at position i of ends.
func (l *link) start(i int) int {
	if i == 0 {
		return 0
	}
	return l.ends[i-1]
}

// next returns the next batch to send, or any = false if there is none.
func (l *link) next(epoch uint64) (b batch, any bool) {
	if !l.up {
		return batch{}, false
	}
	from := l.out
	for l.out < len(l.ends) && l.fits(from) {
		l.out++
	}
	if from == l.out && !l.owes {
		return batch{}, false
	}
	first := l.acked + uint64(from-l.skip) + 1
	l.most = max(l.most, first+uint64(l.out-from)-1)
	l.told, l.owes = l.got, false
	return batch{epoch: epoch, first: first, ack: l.got, frames: l.frames[l.start(from):l.start(l.out)]}, true
}

// fits reports whether the next frame fits into the window, and into the batch that begins at
// from.
func (l *link) fits(from int) bool {
	return l.out-l.skip < window && l.ends[l.out]-l.start(l.skip) <= windowBytes &&
		(l.out == from || l.ends[l.out]-l.start(from) <= maxBatch)
}

// connected notes that the lane is up or lost. Frames that were not acknowledged are sent again,
// from the first one (L3).
func (l *link) connected(up bool) {
	l.up, l.out = up, l.skip
	l.owes = l.got > 0
}

// errDropped means that a frame could not be kept: the lane must be closed, so that the frame is
// sent again.
var errDropped = errors.New("host: frames of a later epoch exceed the window")

// keep keeps the frames of a batch of a later epoch (L4).
func (l *link) keep(b *batch) error {
	k := &l.kept
	if b.epoch < k.epoch {
		return nil
	}
	if b.epoch > k.epoch {
		*k = kept{epoch: b.epoch, frames: k.frames[:0]}
	}
	return each(b, &k.count, func(f []byte) error {
		if k.count > window || len(k.frames)+len(f) > windowBytes+maxBatch {
			return errDropped
		}
		k.frames = wire.AppendBytes(k.frames, f)
		return nil
	})
}

// GapError means that frames between the newest one that came and this one are missing. A peer sends
// the first ones of an epoch only once, so a server that is started again in the epoch lacks them.
type GapError struct{ Epoch, Frame, Newest uint64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("host: frame %d of epoch %d comes after %d", e.Frame, e.Epoch, e.Newest)
}

// each calls take for the frames of a batch that follow the first got ones, and counts them. It
// skips frames that have come before.
func each(b *batch, got *uint64, take func(f []byte) error) error {
	for rest, number := b.frames, b.first; len(rest) > 0; number++ {
		var f []byte
		var err error
		if f, rest, err = cut(rest); err != nil {
			return err
		}
		if number <= *got {
			continue
		}
		if number != *got+1 {
			return &GapError{b.epoch, number, *got}
		}
		*got = number
		if err := take(f); err != nil {
			*got = number - 1
			return err
		}
	}
	return nil
}

// tick sends an acknowledgement for what came since the last tick, and notes what the peer has
// not acknowledged.
func (l *link) tick(now int64) {
	if l.got > l.told {
		l.owes = true
	}
	frames, bytes := l.waiting()
	if l.mark <= l.acked {
		if l.mark = 0; frames > 0 {
			l.mark, l.markAt = l.acked+uint64(frames), now
		}
	}
	switch full := frames >= window || bytes >= windowBytes; {
	case !full:
		l.full = 0
	case l.full == 0:
		l.full = now
	}
}

// stuck reports whether the peer has not acknowledged a frame for that long, or has kept the
// window full.
func (l *link) stuck(now, long int64) bool {
	return l.mark > l.acked && now-l.markAt >= long || l.full != 0 && now-l.full >= long
}

// links are the links to all servers, by their ids.
type links struct {
	*self
	list     []*link
	sent     uint64 // frames, counted for people
	overflow bool   // a link has exceeded its bounds
	scratch  []byte
}

// reset forgets all frames with the seat (S5).
func (ls *links) reset() {
	ls.overflow = false
	for _, l := range ls.list {
		l.reset(ls.now)
		l.kept = kept{}
	}
}

// begin begins an epoch.
func (ls *links) begin() {
	for _, l := range ls.list {
		l.reset(ls.now)
	}
}

// to returns the link to a server, and creates it if necessary.
func (ls *links) to(server uint64) *link {
	i, found := slices.BinarySearchFunc(ls.list, server, func(l *link, s uint64) int { return cmp.Compare(l.server, s) })
	if !found {
		ls.list = slices.Insert(ls.list, i, &link{server: server})
	}
	return ls.list[i]
}

// send sends a frame to the member with a rank.
func (ls *links) send(to process.ID, f *frame) {
	ls.scratch = f.append(ls.scratch[:0])
	l := ls.to(ls.member.Members[to].Server)
	l.add(ls.scratch)
	ls.sent++
	if _, bytes := l.waiting(); bytes > backlog {
		ls.overflow = true
	}
}

// crowded reports whether a link to a member is over half full (L5).
func (ls *links) crowded() bool {
	return slices.ContainsFunc(ls.list, (*link).crowded)
}
