package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A segment is a sequence of frames. A frame has eight bytes with the length of the record
// (lower 56 bits) and of the zeros that pad it to a multiple of eight (bits 56 to 58; bit 63 is
// set if there are any), then the record. A record has a type, data, and a checksum over the
// data that continues the checksum of the previous record. The checksum does not cover the
// type, the length and the padding, so the etcd decoder does not detect all flipped bits in them;
// and it takes a length that points beyond the end of the file for the end of the log.
// Here all of these are checked.
type frame struct {
	kind int64
	data []byte
	crc  uint32
	next int64 // the offset behind the padding
}

const frameHead = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errCut    = errors.New("the record extends beyond the end of the file")
	errLength = errors.New("the length of the record is not a valid one")
)

// readFrame reads the frame at an offset without looking at its checksum.
func readFrame(b []byte, at int64) (frame, error) {
	if int64(len(b))-at < frameHead {
		return frame{}, errCut
	}
	size, pad, err := frameSize(b[at:])
	if err != nil {
		return frame{}, err
	}
	if size+pad > int64(len(b))-at-frameHead {
		return frame{}, errCut
	}
	body := b[at+frameHead:][:size+pad]
	if !allZero(body[size:]) {
		return frame{}, errors.New("the padding of the record is not zero")
	}
	f, n := readRecord(body[:size])
	if n != int(size) {
		return frame{}, errors.New("unreadable record")
	}
	f.next = at + frameHead + size + pad
	return f, nil
}

func frameSize(b []byte) (size, pad int64, err error) {
	field := binary.LittleEndian.Uint64(b)
	size = int64(field & (1<<56 - 1))
	pad = (8 - size%8) % 8
	want := uint64(size)
	if pad != 0 {
		want |= uint64(0x80|pad) << 56
	}
	if field != want || size == 0 {
		return 0, 0, errLength
	}
	return size, pad, nil
}

// readRecord reads a record from the start of b, and returns the number of bytes that it takes
// according to its own fields; 0 if there is none.
func readRecord(b []byte) (f frame, n int) {
	for want := protowire.Number(1); want <= 3; want++ {
		number, kind, tag := protowire.ConsumeTag(b[n:])
		if tag < 0 || number != want {
			break
		}
		n += tag
		size := -1
		switch {
		case number == 3 && kind == protowire.BytesType:
			f.data, size = protowire.ConsumeBytes(b[n:])
		case number < 3 && kind == protowire.VarintType:
			var v uint64
			if v, size = protowire.ConsumeVarint(b[n:]); v > math.MaxUint32 {
				return f, 0 // protobuf would drop the upper bits
			}
			if number == 1 {
				f.kind = int64(v)
			} else {
				f.crc = uint32(v)
			}
		}
		if size < 0 {
			return f, 0
		}
		n += size
	}
	if f.kind < wal.MetadataType || f.kind > wal.SnapshotType {
		return f, 0
	}
	return f, n
}

// check compares the checksum with the one computed from the previous records.
func (f frame) check(before uint32) error {
	if f.kind == wal.CrcType {
		return nil // this record states the checksum instead
	}
	if sum := crc32.Update(before, castagnoli, f.data); sum != f.crc {
		return fmt.Errorf("the checksum of the record is %08x, its data gives %08x", f.crc, sum)
	}
	return nil
}

// stamp is the format version as an unknown field of a hard state.
var stamp = protowire.AppendVarint(protowire.AppendTag(nil, stampField, protowire.VarintType), formatVersion)

const stampField = 15

func decodeState(data []byte) (*raftpb.HardState, uint64, error) {
	hard := new(raftpb.HardState)
	if err := proto.Unmarshal(data, hard); err != nil {
		return nil, 0, fmt.Errorf("the hard state is unreadable: %w", err)
	}
	unknown := hard.ProtoReflect().GetUnknown()
	number, kind, n := protowire.ConsumeTag(unknown)
	if n < 0 || number != stampField || kind != protowire.VarintType {
		return nil, 0, errors.New("the record has the type of a hard state and is not one")
	}
	version, _ := protowire.ConsumeVarint(unknown[n:])
	hard.ProtoReflect().SetUnknown(nil)
	return hard, version, nil
}

// decodeEntry returns the position of an entry in the log.
func decodeEntry(data []byte) (position, error) {
	entry := new(raftpb.Entry)
	if err := proto.Unmarshal(data, entry); err != nil {
		return position{}, fmt.Errorf("the entry is unreadable: %w", err)
	}
	if len(entry.ProtoReflect().GetUnknown()) > 0 || entry.GetIndex() == 0 {
		return position{}, errors.New("the record has the type of an entry and is not one")
	}
	return position{entry.GetIndex(), entry.GetTerm()}, nil
}

// sectorBytes is the unit that a disk writes completely or not at all. Space that was
// allocated and never written reads as zeros.
const sectorBytes = 512

// torn reports whether the damage at s.at, in the last segment, is that of a crash during a
// Save: some sector of the record was never written, and neither was a later Save.
func (s *scanner) torn() bool {
	return !s.lengthDamaged() && s.sectorMissing() && !s.savedLater()
}

// lengthDamaged reports whether the record is complete and only the length before it is wrong.
// A crash causes that only if the length is at the end of its sector: then the length may be
// missing although the record is there.
func (s *scanner) lengthDamaged() bool {
	if int64(len(s.b))-s.at < frameHead {
		return false
	}
	if (s.at+frameHead)%sectorBytes == 0 && allZero(s.b[s.at:s.at+frameHead]) {
		return false
	}
	size, _, err := frameSize(s.b[s.at:])
	f, n := readRecord(s.b[s.at+frameHead:])
	return n > 0 && f.check(s.crc) == nil && (err != nil || size != int64(n))
}

func (s *scanner) sectorMissing() bool {
	end := int64(len(s.b))
	if end-s.at >= frameHead {
		size, pad, err := frameSize(s.b[s.at:])
		if err == nil && s.at+frameHead+size+pad > end {
			return true // the file never had this size
		}
		if err == nil {
			end = s.at + frameHead + size + pad
		} else {
			// Without a length only the sector in which it should be can show that.
			end = min(end, s.at-s.at%sectorBytes+sectorBytes)
		}
	} else {
		return true
	}
	for from := s.at; from < end; {
		to := min(from-from%sectorBytes+sectorBytes, end)
		if allZero(s.b[from:to]) {
			return true
		}
		from = to
	}
	return false
}

// savedLater searches behind the damage for a hard state record and a record that continues it.
// The hard state ends a Save. The record behind it belongs to the next Save, which began only
// when everything before it was durable.
func (s *scanner) savedLater() bool {
	from := s.at + frameHead
	if size, pad, err := frameSize(padded(s.b[s.at:])); err == nil && s.at+frameHead+size+pad <= int64(len(s.b)) {
		from = s.at + frameHead + size + pad
	}
	for at := from; at < int64(len(s.b)); at += frameHead {
		first, err := readFrame(s.b, at)
		if err != nil || first.kind != wal.StateType {
			continue
		}
		if _, _, err := decodeState(first.data); err != nil {
			continue
		}
		second, err := readFrame(s.b, first.next)
		if err == nil && second.check(first.crc) == nil {
			return true
		}
	}
	return false
}

// padded extends the rest of a file to the size of a frame's head.
func padded(b []byte) []byte {
	if len(b) >= frameHead {
		return b
	}
	return append(append(make([]byte, 0, frameHead), b...), make([]byte, frameHead-len(b))...)
}
