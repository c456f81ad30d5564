package host

import (
	"fmt"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
)

// Lane notes that frames can be sent to a server from now on, or no longer (L3).
func (h *Host) Lane(server uint64, up bool) {
	if l := h.links.to(server); l.up != up {
		l.connected(up)
	}
}

// Receive accepts a batch from a server. After an error the lane must be closed.
func (h *Host) Receive(now int64, server uint64, data []byte) (err error) {
	defer h.guard()
	if h.output.Err != nil {
		return nil
	}
	h.begin(now)
	b, err := decodeBatch(data)
	if err != nil {
		return err
	}
	l := h.links.to(server)
	switch h.member.Fate(b.epoch) {
	case view.Keep:
		return l.keep(&b)
	case view.Take:
		if from := h.member.RankOf(server); from != process.None {
			err = h.take(l, from, &b)
		}
	case view.Drop:
	}
	h.finish()
	return err
}

// take accepts the frames of a batch of the present epoch.
func (h *Host) take(l *link, from process.ID, b *batch) error {
	l.heard = h.now
	if !l.acknowledge(b.ack) {
		return fmt.Errorf("host: server %d acknowledges %d frames of epoch %d, which were not sent", l.server, b.ack, b.epoch)
	}
	err := each(b, &l.got, func(data []byte) error { return h.frame(from, data) })
	if l.got-l.told >= together {
		l.owes = true
	}
	return err
}

// takeKept accepts the frames of this epoch that came before it began (L4). If the frames of a
// link are invalid, its lane is closed, as if they had come now.
func (h *Host) takeKept() {
	for _, l := range h.links.list {
		k := l.kept
		if k.epoch > h.member.Epoch || k.epoch == 0 {
			continue
		}
		l.kept = kept{}
		from := h.member.RankOf(l.server)
		if k.epoch < h.member.Epoch || from == process.None {
			continue
		}
		if h.take(l, from, &batch{epoch: k.epoch, first: 1, frames: k.frames}) != nil {
			h.bad = append(h.bad, l.server)
		}
	}
}

// frame processes one frame of the present epoch.
func (h *Host) frame(from process.ID, data []byte) error {
	f, err := decodeFrame(data)
	if err != nil {
		return err
	}
	switch f.kind {
	case frameResumed:
		h.member.Hear(from)
		return nil
	case frameHandover:
		h.asides.receive(from, &f)
		return nil
	case frameAdopted:
		h.departure.onAdopted(from)
		return nil
	case frameRefused:
		h.departure.onRefused(from)
		return nil
	case frameCut:
		return h.cuts.receive(from, &f)
	case frameSystem:
		return h.watch.receive(from, f.message)
	}
	in := h.machines.instance(string(f.name))
	if in.prefix == nil {
		return fmt.Errorf("host: server %d sends a frame for %q, which no algorithm guards in epoch %d", h.member.Members[from].Server, f.name, h.member.Epoch)
	}
	if f.kind == frameWake {
		h.machines.make(in)
		h.machines.account(in)
		return nil
	}
	if err := h.machines.decode(in, from, f.message); err != nil {
		return err
	}
	h.cuts.pass(from, data, in.name)
	h.machines.deliver(in)
	return nil
}
