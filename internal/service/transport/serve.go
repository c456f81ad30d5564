package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// serve delivers what a peer sends until the connection breaks.
func (t *Transport) serve(v *visit) {
	defer v.leave()
	t.wg.Go(func() { v.peer.beat(v.connection) })
	hello, _ := v.peer.who()
	t.handler.Met(hello)
	read := v.readMessages
	switch v.lane {
	case peering.Snapshots:
		read = v.readSnapshot
	case peering.Frames:
		read = v.readFrames
	}
	err := read()
	select {
	case <-v.closed: // replaced, removed or closed regularly, unless it is broken
		err = v.broken
	default:
	}
	t.logEnd(v, err)
}

func (t *Transport) logEnd(v *visit, err error) {
	var network net.Error
	switch {
	case err == nil:
	case errors.Is(err, ErrMissed):
		t.log.Info("refused frames of a peer until the next epoch", "peer", v.peer.id, "err", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.As(err, &network):
		t.log.Info("a peer closed its connection", "peer", v.peer.id, "err", err)
	default:
		t.log.Error("closed the connection of a peer", "peer", v.peer.id, "remote", v.raw.RemoteAddr().String(), "err", err)
	}
}

func (v *visit) readMessages() error {
	for {
		k, payload, err := v.peer.hear(v.connection)
		if err != nil {
			return err
		}
		switch k {
		case kindMessage:
			m := new(raftpb.Message)
			if err := proto.Unmarshal(payload, m); err != nil {
				return fmt.Errorf("a frame contains no message: %w", err)
			}
			v.deliver(m)
		case kindNote, kindSeat, kindTold, kindClock:
			if err := v.note(k, payload); err != nil {
				return err
			}
		case kindHello:
			if err := v.again(payload); err != nil {
				return err
			}
		default:
			return unexpected(k)
		}
	}
}

// note takes a note, or a message about a seat or a clock.
func (v *visit) note(k kind, payload []byte) error {
	most, take := maxNote, v.peer.t.handler.Noted
	switch k {
	case kindSeat:
		most, take = maxSeat, v.peer.t.handler.Seat
	case kindTold:
		most, take = maxSeat, v.peer.t.handler.Told
	case kindClock:
		take = v.peer.t.handler.Clock
	}
	if len(payload) > most {
		return &FrameSizeError{Size: len(payload), Max: most}
	}
	take(v.peer.id, slices.Clone(payload))
	return nil
}

// again takes a new introduction of the peer.
func (v *visit) again(payload []byte) error {
	h, err := peering.DecodeHello(payload)
	if err != nil {
		return err
	}
	p := v.peer
	p.mu.Lock()
	err = p.known.Again(p.id, h)
	p.mu.Unlock()
	if err == nil {
		signal(p.framing)
		p.t.handler.Met(h)
	}
	return err
}

// deliver hands a message over, if it may come from this peer.
func (v *visit) deliver(m *raftpb.Message) {
	t := v.peer.t
	if m.GetFrom() == v.peer.id && m.GetTo() == t.cfg.Self.Server {
		t.handler.Receive(m)
		return
	}
	if t.muted.Pass(v.peer.key("address")) {
		t.log.Warn("dropped a message whose sender or receiver does not match the connection",
			"peer", v.peer.id, "type", m.GetType(), "from", m.GetFrom(), "to", m.GetTo())
	}
}
