// Package store keeps what a server must not forget: raft's hard state, log
// and snapshots, in one directory that belongs to one server of one cluster.
//
//	LOCK           held while a process uses the directory; contains its process id
//	meta.json      format version, cluster, server, and a random id of the directory
//	join.json      if the server joined: what the cluster told it
//	founding.json  with which directories the cluster was founded
//	reached        how far the log has come, independent of the log itself
//	wal/           the log, in segments, written by etcd's wal package
//	snap/          the two newest snapshots, in the format of etcd's snap package
//	snap/founding  the seed: the state from which a server should found a cluster
//
// # What a Save promises
//
// A Save is atomic and, when it returns, durable: after a crash the directory has every Save
// that returned, and either all or nothing of the one that was under way. Every Save ends with a
// hard state record, which has the version of this format, and an fsync before the next
// Save begins.
//
// So if a log stops in the middle of a Save, a crash was the reason, and the log is cut back to
// the last complete Save. A damaged record that is followed by a later Save was durable and must
// have been damaged since. The store refuses such a log, with the file and the offset, because
// the content of the record is lost. In the last Save, a record counts as cut by a crash if one
// of its sectors reads as zeros, like space that was never written. There are two cases that
// the store cannot distinguish from a crash: a last Save whose data contains a whole sector of
// zeros, in which a bit has flipped later; and a record whose length is at the end of its sector
// and has become zero.
//
// A segment has its full length before anything is written to it. So a shorter segment that
// ends within a Save was truncated later, and is refused. If nothing in the log shows that its
// end is missing, the file reached does, except for saves in the last second before the server
// was killed.
//
// After a failed write or fsync every further Save fails with the same error. The kernel may have
// dropped the pages that it could not write, so trying again could report success for lost data.
package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/founding"
)

// etcd's default of 64 MB is meant for a key-value store. Each server
// allocates two segments ahead.
func init() { wal.SegmentSizeBytes = 16 << 20 }

// State is the content of a directory when it is opened.
type State struct {
	Fresh bool   // nothing was ever saved here
	UID   uint64 // drawn at random when the directory was created
	// Record is that of SaveRecord, nil when none was saved.
	Record founding.Record
	// Seeded means that the directory has a seed: see PutSeed.
	Seeded bool

	HardState *raftpb.HardState // nil when none was saved
	Snapshot  *raftpb.Snapshot  // nil when none was saved
	Entries   []*raftpb.Entry   // those after Snapshot
}

// Store is an open directory. Its methods may be called from any goroutine;
// saves are made one after the other.
type Store struct {
	dir  string
	log  *slog.Logger
	zap  *zap.Logger
	lock *fileutil.LockedFile

	mu      sync.Mutex
	wal     *wal.WAL
	hard    *raftpb.HardState // as given to the last Save, or as opened
	lazy    bool              // the log does not hold hard's commit index yet
	written position          // of the newest file of WriteSnapshot
	kept    []position        // of the snapshots on disk, oldest first
	err     error             // of the first failure; final

	reached *reached
}

// Open opens the directory of a server, creates it if necessary, and returns its content. Errors
// have one line. They include ClusterError, ServerError, DirectoryError, FormatError,
// LockedError and CorruptError.
func Open(dir string, id Identity, log *slog.Logger) (*Store, *State, error) {
	lock, err := takeDirectory(dir)
	if err != nil {
		return nil, nil, err
	}
	s := &Store{dir: dir, log: log, zap: zapTo(log), lock: lock}
	state, err := s.open(id)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	go s.reached.follow(s.come, log)
	return s, state, nil
}

func (s *Store) walDir() string  { return filepath.Join(s.dir, "wal") }
func (s *Store) snapDir() string { return filepath.Join(s.dir, "snap") }

func (s *Store) open(id Identity) (*State, error) {
	m, err := readMeta(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		m, err = s.create(id)
	}
	if err != nil {
		return nil, err
	}
	if err := m.check(s.dir, id); err != nil {
		return nil, err
	}
	record, err := readFounding(s.dir)
	if err != nil {
		return nil, err
	}
	seeded, err := exists(seedPath(s.dir))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	state, err := s.restore(m)
	if err != nil {
		return nil, err
	}
	state.Record, state.Seeded = record, seeded
	return state, nil
}

// create creates the parts of a directory, the meta file last: if it exists, the rest is
// complete.
func (s *Store) create(id Identity) (meta, error) {
	m := newMeta(id)
	if err := s.discardUnfinished(); err != nil {
		return m, err
	}
	if err := os.MkdirAll(s.snapDir(), 0o700); err != nil {
		return m, fmt.Errorf("store: create data directory: %w", err)
	}
	w, err := wal.Create(s.zap, s.walDir(), m.encode())
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = syncDirectory(s.walDir()) // the wal package does this for the segments that follow the first one
	}
	if err != nil {
		return m, fmt.Errorf("store: create log in %s: %w", s.walDir(), err)
	}
	return m, writeMeta(s.dir, m)
}

// own are the names that a data directory may contain before it is complete; the root of a
// file system also has lost+found.
var own = []string{"LOCK", "wal", "wal.tmp", "snap", "lost+found", metaName + ".tmp", joinName, joinName + ".tmp", reachedName, "admin.sock", "admin.sock.tmp"}

// checkOurs refuses a directory that has foreign files and no complete data directory: a
// mistyped --data must not scatter files into it.
func checkOurs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // most likely it does not exist yet; if not, creating it will fail
	}
	foreign := ""
	for _, e := range entries {
		if e.Name() == metaName {
			return nil
		}
		if !slices.Contains(own, e.Name()) {
			foreign = e.Name()
		}
	}
	if foreign != "" {
		return &DirectoryError{dir, fmt.Sprintf("is not empty: it has %q, which is not a server's; name an empty or a new directory", foreign)}
	}
	return nil
}

// discardUnfinished removes what a crash during create has left. It never removes anything
// that was used.
func (s *Store) discardUnfinished() error {
	if !wal.Exist(s.walDir()) {
		return nil
	}
	found, err := scan(s.walDir(), nil)
	if err != nil {
		return err
	}
	if found.saves > 0 {
		return damage(filepath.Join(s.dir, metaName), "is missing, but the log in %s has been used: restore the file, or move the directory away", s.walDir())
	}
	return os.RemoveAll(s.walDir())
}

// restore reads the newest snapshot and the log after it, and leaves the log open for
// appending.
func (s *Store) restore(m meta) (*State, error) {
	found, err := scan(s.walDir(), m.encode())
	if err != nil {
		return nil, err
	}
	if s.reached, err = readReached(s.dir); err != nil {
		return nil, err
	}
	if err := s.reached.check(s.walDir(), found); err != nil {
		return nil, err
	}
	if err := s.repair(found); err != nil {
		return nil, err
	}
	state := &State{UID: m.UID, HardState: found.hard, Fresh: found.saves == 0}
	start := &walpb.Snapshot{Index: new(uint64(0)), Term: new(uint64(0))}
	if n := len(found.snaps); n > 0 {
		newest := found.snaps[n-1]
		if state.Snapshot, err = s.readSnapshot(newest); err != nil {
			return nil, err
		}
		start.Index, start.Term = new(newest.index), new(newest.term)
		if s.kept, err = s.stillThere(found.snaps); err != nil {
			return nil, err
		}
	}
	if state.Entries, err = s.openLog(start); err != nil {
		return nil, err
	}
	state.Entries = found.log.cut(state.Entries, start.GetIndex())
	if err := errors.Join(s.settle(), checkState(s.walDir(), state)); err != nil {
		return nil, errors.Join(err, s.wal.Close())
	}
	s.hard = &raftpb.HardState{}
	if state.HardState != nil {
		s.hard = state.HardState
	}
	s.purge()
	return state, nil
}

// forkTime is how long a file that this process has just closed may stay locked: while the
// program starts another process, that process has all its files, and their locks, until it
// executes its own program.
const forkTime = 2 * time.Second

// unlessForked locks files that only this process can have locked.
func unlessForked(lock func() error) error {
	err := lock()
	for began := time.Now(); errors.Is(err, fileutil.ErrLocked) && time.Since(began) < forkTime; {
		time.Sleep(5 * time.Millisecond)
		err = lock()
	}
	return err
}

func (s *Store) openLog(start *walpb.Snapshot) ([]*raftpb.Entry, error) {
	if err := s.removeSpare(); err != nil {
		return nil, err
	}
	var w *wal.WAL
	err := unlessForked(func() (err error) {
		w, err = wal.Open(s.zap, s.walDir(), start)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: open log in %s: %w", s.walDir(), err)
	}
	_, _, entries, err := w.ReadAll()
	if err != nil {
		// Close would try to sync a log that is not open for writing.
		w.SetUnsafeNoFsync()
		return nil, errors.Join(fmt.Errorf("store: read log in %s: %w", s.walDir(), err), w.Close())
	}
	s.wal = w
	return entries, nil
}

// settle makes durable what was read. A process that was killed may have written it without
// syncing it, and this process will tell others that it has it.
func (s *Store) settle() error {
	if err := errors.Join(s.wal.Sync(), syncDirectory(s.walDir()), syncDirectory(s.dir)); err != nil {
		return fmt.Errorf("store: sync %s: %w", s.dir, err)
	}
	return nil
}

// removeSpare deletes the segments that were allocated ahead and never used. The wal package
// would use them again as they are, with anything that a crash may have left in them.
func (s *Store) removeSpare() error {
	spare, err := filepath.Glob(filepath.Join(s.walDir(), "*.tmp"))
	for _, path := range spare {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("store: remove unused segments: %w", err)
	}
	return nil
}

// checkState detects damage without a damaged record, such as a deleted segment at the end of
// the log.
func checkState(dir string, state *State) error {
	last := state.Snapshot.GetMetadata().GetIndex() + uint64(len(state.Entries))
	if commit := state.HardState.GetCommit(); commit > last {
		return damage(dir, "ends at entry %d, but entry %d was committed: a part of the log is missing", last, commit)
	}
	return nil
}

// Save writes a hard state, entries and a snapshot; any of them may be nil. They are durable
// when it returns, with one exception: a hard state that changes only the commit index is kept
// in memory until the next Save or Close, unless sync is set, because raft can recover the
// commit index by itself.
func (s *Store) Save(hs *raftpb.HardState, entries []*raftpb.Entry, snapshot *raftpb.Snapshot, sync bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	before := s.hard
	s.merge(hs, snapshot)
	if s.obsolete(snapshot) {
		snapshot = nil
	}
	if raft.IsEmptyHardState(s.hard) && len(entries) > 0 {
		return errors.New("store: entries need a hard state, and none was ever saved")
	}
	if len(entries) == 0 && snapshot == nil && !sync && !raft.MustSync(s.hard, before, 0) {
		s.lazy = s.lazy || s.hard != before
		return nil
	}
	if err := s.write(entries, snapshot); err != nil {
		s.err = s.failure(err)
		return s.err
	}
	s.lazy = false
	return nil
}

func (s *Store) failure(err error) error {
	return fmt.Errorf("store: write to %s failed, the server must stop: %w", s.dir, err)
}

// merge takes over the new hard state. A snapshot has only committed state, so the hard state
// saved with it has at least the snapshot's index and term.
func (s *Store) merge(hs *raftpb.HardState, snapshot *raftpb.Snapshot) {
	commit := max(s.hard.GetCommit(), snapshot.GetMetadata().GetIndex())
	if !raft.IsEmptyHardState(hs) {
		s.hard = hs
	}
	term := max(s.hard.GetTerm(), snapshot.GetMetadata().GetTerm())
	if commit > s.hard.GetCommit() || term > s.hard.GetTerm() {
		s.hard = &raftpb.HardState{Term: new(term), Vote: new(s.hard.GetVote()), Commit: new(max(commit, s.hard.GetCommit()))}
	}
}

// obsolete reports whether there is nothing in the snapshot to save, or a newer snapshot is
// already on disk.
func (s *Store) obsolete(snapshot *raftpb.Snapshot) bool {
	n := len(s.kept)
	return raft.IsEmptySnap(snapshot) || n > 0 && s.kept[n-1].index >= snapshot.GetMetadata().GetIndex()
}

func (s *Store) write(entries []*raftpb.Entry, snapshot *raftpb.Snapshot) error {
	if raft.IsEmptyHardState(s.hard) {
		return nil
	}
	if snapshot != nil {
		if err := s.recordSnapshot(snapshot); err != nil {
			return err
		}
	}
	if err := s.wal.Save(stamped(s.hard), entries); err != nil {
		return err
	}
	// The wal package skips the fsync if only the commit index has changed.
	if len(entries) == 0 {
		if err := s.wal.Sync(); err != nil {
			return err
		}
	}
	if snapshot != nil {
		s.kept = append(s.kept, positionOf(snapshot))
		s.purge()
	}
	return nil
}

// Close saves what Save has kept in memory and unlocks the directory. After a failed Save
// it writes nothing more and returns that error.
func (s *Store) Close() error {
	s.reached.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.wal.SetUnsafeNoFsync()
		_ = s.wal.Close() // s.err has the reason already
		return errors.Join(s.err, s.reached.close(mark{}), s.lock.Close())
	}
	var err error
	if s.lazy {
		err = s.write(nil, nil)
	}
	if err = errors.Join(err, s.wal.Close()); err == nil {
		err = s.reached.close(mark{s.hard.GetCommit(), s.hard.GetTerm()})
	}
	err = errors.Join(err, s.lock.Close())
	s.err = errors.New("store: " + s.dir + " is closed")
	return err
}

// stamped returns the hard state with the format version added, in a field that raft does not
// use. The version distinguishes a hard state from an entry if a flipped bit has changed the
// type of the record, which no checksum covers.
func stamped(hs *raftpb.HardState) *raftpb.HardState {
	out := proto.Clone(hs).(*raftpb.HardState)
	out.ProtoReflect().SetUnknown(stamp)
	return out
}
