package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// chunkBytes is the size of the part of a snapshot in one frame.
const chunkBytes = 1 << 20

// offerSnapshot queues a snapshot behind earlier ones, or reports that it failed. The caller
// holds the transport's mu.
func (p *peer) offerSnapshot(m *raftpb.Message) {
	p.sending.Lock()
	taken := p.snapshots.Offer(m)
	p.sending.Unlock()
	if taken {
		signal(p.ships)
	} else {
		p.t.failSnapshot(p.id)
	}
}

// sendSnapshots sends snapshots one after another, and reports each to the handler.
func (p *peer) sendSnapshots() {
	for {
		p.sending.Lock()
		m, any := p.snapshots.Begin()
		p.sending.Unlock()
		if !any {
			select {
			case <-p.ships:
				continue
			case <-p.ctx.Done():
				return
			}
		}
		err := p.sendSnapshot(m)
		p.sending.Lock()
		taken := p.snapshots.End()
		p.sending.Unlock()
		if err != nil && p.ctx.Err() == nil {
			p.t.log.Warn("cannot send a snapshot", "peer", p.id, "index", m.GetSnapshot().GetMetadata().GetIndex(), "err", err)
		}
		p.t.handler.SnapshotSent(p.id, taken)
	}
}

// sendSnapshot sends a snapshot on its own connection, and waits until the peer has taken it
// over.
func (p *peer) sendSnapshot(m *raftpb.Message) error {
	if err := peering.CheckSnapshot(uint64(len(m.GetSnapshot().GetData())), p.t.cfg.MaxSnapshot); err != nil {
		return err
	}
	l, err := p.dial(peering.Snapshots)
	if err != nil {
		return err
	}
	defer p.hangUp(l)
	p.t.handler.Met(p.introduction())
	p.t.wg.Go(func() { p.beat(l) })
	answered := make(chan error, 1)
	p.t.wg.Go(func() { answered <- p.awaitTaken(l) })
	if err := l.writeSnapshot(m); err != nil {
		l.close()
		return errors.Join(err, <-answered)
	}
	return <-answered
}

// awaitTaken reads until the peer confirms that it has the snapshot, and closes the
// connection then or when the peer sends nothing for too long.
func (p *peer) awaitTaken(l *connection) error {
	defer l.close()
	if _, err := p.hearOnly(l, kindTaken); err != nil {
		return err
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	p.snapshots.Taken()
	return nil
}

// writeSnapshot writes a message in parts. Its data are neither copied nor joined with the
// rest, since there may be hundreds of megabytes.
func (l *connection) writeSnapshot(m *raftpb.Message) error {
	data := m.GetSnapshot().GetData()
	head := binary.AppendUvarint(nil, uint64(len(data)))
	head, err := (proto.MarshalOptions{}).MarshalAppend(head, withoutData(m))
	if err != nil {
		return fmt.Errorf("encoding a snapshot: %w", err)
	}
	if size := len(head) + frameBytes; size > l.in.max {
		return &FrameSizeError{Size: size, Max: l.in.max}
	}
	if err := l.write(kindHead, head, nil, true); err != nil {
		return err
	}
	for chunk := range slices.Chunk(data, chunkBytes) {
		if err := l.write(kindChunk, nil, chunk, true); err != nil {
			return err
		}
	}
	return nil
}

// withoutData returns m without the data of its snapshot. The two share
// everything else.
func withoutData(m *raftpb.Message) *raftpb.Message {
	snapshot := new(raftpb.Snapshot)
	share(snapshot, m.GetSnapshot(), "data")
	head := new(raftpb.Message)
	share(head, m, "snapshot")
	head.Snapshot = snapshot
	return head
}

// share copies the fields of src to dst, except one. It goes through all fields that exist, so
// that a field that raft adds is not forgotten.
func share(dst, src proto.Message, except protoreflect.Name) {
	to := dst.ProtoReflect()
	src.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Name() != except {
			to.Set(field, value)
		}
		return true
	})
}

// readSnapshot reads one snapshot, delivers it and confirms it.
func (v *visit) readSnapshot() error {
	head, err := v.peer.hearOnly(v.connection, kindHead)
	if err != nil {
		return err
	}
	m, size, err := decodeHead(head, v.peer.t.cfg.MaxSnapshot)
	if err != nil {
		return err
	}
	arrival := peering.NewArrival(size)
	for !arrival.Whole() {
		chunk, err := v.peer.hearOnly(v.connection, kindChunk)
		if err != nil {
			return err
		}
		if err := arrival.Add(chunk); err != nil {
			return err
		}
	}
	m.Snapshot.Data = arrival.Data()
	v.deliver(m)
	if err := v.write(kindTaken, nil, nil, true); err != nil {
		return err
	}
	return v.awaitEnd()
}

// decodeHead reads the message that a snapshot belongs to, and the number of bytes of data that
// follow.
func decodeHead(b []byte, most int) (*raftpb.Message, int, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, 0, errors.New("unreadable size of a snapshot")
	}
	if err := peering.CheckSnapshot(size, most); err != nil {
		return nil, 0, err
	}
	m := new(raftpb.Message)
	if err := proto.Unmarshal(b[n:], m); err != nil {
		return nil, 0, fmt.Errorf("a frame contains no message: %w", err)
	}
	if m.GetType() != raftpb.MsgSnap || m.Snapshot == nil {
		return nil, 0, fmt.Errorf("a connection for snapshots carries a message of type %v", m.GetType())
	}
	return m, int(size), nil
}

// awaitEnd waits until the other side has read the confirmation and closes. If this side closed
// first, the confirmation could get lost: closing a connection with unread bytes resets
// it.
func (v *visit) awaitEnd() error {
	for {
		k, _, err := v.read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case k != kindPing:
			return unexpected(k)
		}
	}
}
