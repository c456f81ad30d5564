package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// CorruptError means that a file, or the log as a whole, is damaged.
type CorruptError struct {
	Path   string
	Offset int64 // -1 if it is not about one offset
	Reason string
}

// damage returns the error of damage that has no single offset.
func damage(path, format string, args ...any) error {
	return &CorruptError{Path: path, Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

func (e *CorruptError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("store: %s %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("store: %s is corrupt at byte %d: %s", e.Path, e.Offset, e.Reason)
}

// segment is one file of the log; first is the index of the first entry that
// can be in it.
type segment struct {
	path       string
	seq, first uint64
}

// listSegments returns the segments in order, or an error that names a missing one.
func listSegments(dir string) ([]segment, error) {
	files, err := os.ReadDir(dir) // sorted by name, and so by sequence number
	if err != nil {
		return nil, fmt.Errorf("store: read log directory: %w", err)
	}
	var segments []segment
	for _, f := range files {
		var seq, first uint64
		if n, err := fmt.Sscanf(f.Name(), "%016x-%016x.wal", &seq, &first); n != 2 || err != nil || !strings.HasSuffix(f.Name(), ".wal") {
			continue
		}
		if n := len(segments); n > 0 && segments[n-1].seq+1 != seq {
			return nil, damage(dir, "lacks segment %d: segment %d is followed by %d, and one is missing", segments[n-1].seq+1, segments[n-1].seq, seq)
		}
		segments = append(segments, segment{filepath.Join(dir, f.Name()), seq, first})
	}
	if len(segments) == 0 {
		return nil, damage(dir, "has no segment: the log is missing")
	}
	return segments, nil
}

// found is the result of a scan of the log.
type found struct {
	saves int               // how many complete saves
	hard  *raftpb.HardState // nil when there is none
	snaps []position        // in the order in which they were saved
	log   replay            // as raft last had it

	last string // path of the last segment
	// tail is the part of an incomplete Save at the end of the last segment, which has to be cut
	// off; nil if there is none.
	tail *tail
}

type tail struct{ at, end int64 }

// scanner reads the log from its first segment to its last.
type scanner struct {
	metadata []byte // nil to accept any
	found    found

	path    string
	b       []byte // the present segment
	crc     uint32 // chained over all segments
	chained bool   // a segment was read before
	at      int64  // the offset of the record being read
	saved   int64  // the offset behind the last complete Save

	// Of the Save being read, in which the snapshot comes before the entries.
	snaps, entries []position
}

// scan verifies the whole log and returns its content.
func scan(dir string, metadata []byte) (*found, error) {
	segments, err := listSegments(dir)
	if err != nil {
		return nil, err
	}
	f, err := scanSegments(segments, metadata, os.ReadFile)
	if err != nil {
		return nil, err
	}
	if n := len(f.snaps); n > 0 && segments[0].first > f.snaps[n-1].index {
		return nil, damage(dir, "starts at entry %d, but the newest snapshot ends at entry %d: a segment is missing", segments[0].first, f.snaps[n-1].index)
	} else if n == 0 && segments[0].seq > 0 {
		return nil, damage(dir, "lacks segment 0: it is missing")
	}
	return f, nil
}

func scanSegments(segments []segment, metadata []byte, read func(string) ([]byte, error)) (*found, error) {
	s := &scanner{metadata: metadata}
	for i, seg := range segments {
		var err error
		if s.b, err = read(seg.path); err != nil {
			return nil, fmt.Errorf("store: read log: %w", err)
		}
		s.path, s.at, s.saved, s.snaps, s.entries = seg.path, 0, 0, nil, nil
		if err := s.segment(i == len(segments)-1); err != nil {
			return nil, err
		}
		s.chained, s.found.last = true, seg.path
	}
	return &s.found, nil
}

func (s *scanner) corrupt(format string, args ...any) error {
	return &CorruptError{Path: s.path, Offset: s.at, Reason: fmt.Sprintf(format, args...)}
}

// segment reads one segment. Only the last segment can end within a Save: the others were
// complete, and synced, before the next one was begun.
func (s *scanner) segment(last bool) error {
	for n := 0; ; n++ {
		if allZero(s.b[s.at:]) {
			break
		}
		f, err := readFrame(s.b, s.at)
		if err == nil {
			err = f.check(s.crc)
		}
		if err != nil {
			if n < 2 || !last || !s.torn() {
				return s.corrupt("%v", err)
			}
			break
		}
		if err := s.record(n, f); err != nil {
			return err
		}
		s.at = f.next
	}
	return s.end(last)
}

func (s *scanner) end(last bool) error {
	switch end := int64(len(bytes.TrimRight(s.b, "\x00"))); {
	case s.saved == 0:
		return s.corrupt("the head of the segment is missing")
	case end <= s.saved:
		return nil
	case !last:
		return s.corrupt("the segment ends in the middle of a save, but another segment follows")
	case int64(len(s.b)) < wal.SegmentSizeBytes:
		return damage(s.path, "has %d bytes and ends within a save, but was made with %d: it was cut after it was written", len(s.b), wal.SegmentSizeBytes)
	default:
		s.found.tail = &tail{at: s.saved, end: max(end, s.at)}
		return nil
	}
}

// record processes a record, the nth of its segment. A segment begins with a checksum that
// continues that of the previous segment, and the metadata.
func (s *scanner) record(n int, f frame) error {
	want, ok := map[int]int64{0: wal.CrcType, 1: wal.MetadataType}[n]
	if ok && f.kind != want || !ok && (f.kind == wal.CrcType || f.kind == wal.MetadataType) {
		return s.corrupt("record %d of the segment has type %d", n, f.kind)
	}
	switch f.kind {
	case wal.CrcType:
		if s.chained && f.crc != s.crc {
			return s.corrupt("the segment does not continue the one before it")
		}
	case wal.MetadataType:
		if s.metadata != nil && !bytes.Equal(s.metadata, f.data) {
			return s.corrupt("the segment belongs to another data directory (%q)", f.data)
		}
		s.saved = f.next
	case wal.EntryType:
		at, err := decodeEntry(f.data)
		if err != nil {
			return s.corrupt("%v", err)
		}
		s.entries = append(s.entries, at)
	case wal.SnapshotType:
		return s.snapshot(f)
	case wal.StateType:
		return s.state(f)
	}
	s.crc = f.crc
	return nil
}

func (s *scanner) snapshot(f frame) error {
	record := new(walpb.Snapshot)
	if err := proto.Unmarshal(f.data, record); err != nil || record.Index == nil || record.Term == nil {
		return s.corrupt("the snapshot record is unreadable")
	}
	s.crc = f.crc
	if record.GetIndex() == 0 { // the wal package writes it at the start of a new log
		s.saved = f.next
		return nil
	}
	s.snaps = append(s.snaps, position{record.GetIndex(), record.GetTerm()})
	return nil
}

// state processes the record that ends a Save, or that repeats the hard state at the start of a
// segment.
func (s *scanner) state(f frame) error {
	hard, version, err := decodeState(f.data)
	if err != nil {
		return s.corrupt("%v", err)
	}
	if version != formatVersion {
		return &FormatError{Path: fmt.Sprintf("%s at byte %d", s.path, s.at), Have: version, Want: formatVersion}
	}
	s.crc = f.crc
	s.saved = f.next
	s.found.hard = hard
	s.found.saves++
	s.found.snaps = append(s.found.snaps, s.snaps...)
	for _, at := range s.snaps {
		s.found.log.snapshot(at)
	}
	for _, at := range s.entries {
		s.found.log.entry(at)
	}
	s.snaps, s.entries = s.snaps[:0], s.entries[:0]
	return nil
}

// repair cuts off a torn tail, and restores the full length of the last segment before anything
// is appended. A later segment that is shorter and ends within a Save is then known to have been
// truncated. The wal package would leave it short.
func (s *Store) repair(f *found) error {
	file, err := os.OpenFile(f.last, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("store: repair log: %w", err)
	}
	if f.tail != nil {
		s.log.Warn("the log ended in an incomplete save, which was never acknowledged; truncated the log",
			"file", f.last, "offset", f.tail.at, "bytes", f.tail.end-f.tail.at)
		err = file.Truncate(f.tail.at)
	}
	if err == nil {
		err = lengthen(file)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("store: repair %s: %w", f.last, err)
	}
	return nil
}

// lengthen restores the original length of a segment.
func lengthen(file *os.File) error {
	info, err := file.Stat()
	if err != nil || info.Size() >= wal.SegmentSizeBytes {
		return err
	}
	return fileutil.Preallocate(file, wal.SegmentSizeBytes, true)
}

// zeros is what allZero compares with, a block at a time.
var zeros [4096]byte

func allZero(b []byte) bool {
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}
