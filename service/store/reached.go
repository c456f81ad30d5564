package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// A log that was cut exactly behind a save, or whose last saves were overwritten
// with zeros, looks like an older log that is whole. Opened as that, a server would
// forget what it acknowledged, and fences would repeat. So the store also keeps, in
// a file of its own, how far the log has come. A log that ends before that is
// damaged.
//
// The file has two slots, written in turn, each in a sector of its own. A crash
// spoils at most the one that was being written. Losing a write is harmless: the
// file then says less than it could. What it says was durable in the log before.

const (
	reachedName = "reached"
	slotBytes   = 20 // commit index, term, and their CRC-32C
)

// reachedEvery is how often the file is written while the log grows. What was saved
// after the last write is not covered, unless Close was called.
var reachedEvery = time.Second

// mark is how far a log has come. Both numbers never go back. The last index
// does, when another leader replaces entries, so it cannot serve.
type mark struct{ commit, term uint64 }

func (m mark) less(than mark) bool {
	return m.commit < than.commit || m.commit == than.commit && m.term < than.term
}

func (m mark) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, m.commit)
	b = binary.LittleEndian.AppendUint64(b, m.term)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// reached is the file. While the log is open for writing, a goroutine of its own
// writes it, so that its fsync does not delay that of the log.
type reached struct {
	path string
	file *os.File // nil before the first write
	at   mark     // in the file
	slot int64    // to be written next
	err  error    // of the first failure; final

	ending sync.Once
	stop   chan struct{}
	done   chan struct{}
}

// readReached returns what the file in dir says. Without a file it says nothing.
func readReached(dir string) (*reached, error) {
	r := &reached{path: filepath.Join(dir, reachedName), stop: make(chan struct{}), done: make(chan struct{})}
	b, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("store: %w", err)
	}
	valid := false
	for slot := range int64(2) {
		from := min(slot*sectorBytes, int64(len(b)))
		one := b[from:min(from+slotBytes, int64(len(b)))]
		if len(one) < slotBytes {
			continue
		}
		at := mark{binary.LittleEndian.Uint64(one), binary.LittleEndian.Uint64(one[8:])}
		if binary.LittleEndian.Uint32(one[16:]) != crc32.Checksum(one[:16], castagnoli) {
			continue
		}
		if valid = true; r.at.less(at) {
			r.at, r.slot = at, 1-slot
		}
	}
	if !valid && !allZero(b) {
		return nil, &CorruptError{Path: r.path, Reason: "neither of its two checksums matches"}
	}
	return r, nil
}

// check refuses a log that ends before what it had reached.
func (r *reached) check(dir string, f *found) error {
	last := f.log.last()
	switch {
	case last < r.at.commit:
		return damage(dir, "ends at entry %d, but entry %d was committed (%s): the end of the log is missing", last, r.at.commit, r.path)
	case f.hard.GetTerm() < r.at.term:
		return damage(dir, "ends in term %d, but had reached term %d (%s): the end of the log is missing", f.hard.GetTerm(), r.at.term, r.path)
	}
	return nil
}

// write makes the file say at, unless it says so much already.
func (r *reached) write(at mark) error {
	if r.err == nil && r.at.less(at) {
		if r.err = r.put(at); r.err == nil {
			r.at, r.slot = at, 1-r.slot
		}
	}
	return r.err
}

func (r *reached) put(at mark) (err error) {
	if r.file == nil {
		if r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
			return err
		}
	}
	if _, err := r.file.WriteAt(at.encode(), r.slot*sectorBytes); err != nil {
		return err
	}
	return fileutil.Fdatasync(r.file)
}

// follow writes the file every so often what since returns, until end. A failure
// takes nothing from the log: it is logged, and the file stays as it is.
func (r *reached) follow(since func() mark, log *slog.Logger) {
	defer close(r.done)
	ticker := time.NewTicker(reachedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-r.stop:
			return
		}
		if err := r.write(since()); err != nil {
			log.Warn("cannot record the length of the log; if its end gets lost, the server may not notice", "file", r.path, "err", err)
			return
		}
	}
}

// end stops follow. It may be called again.
func (r *reached) end() {
	r.ending.Do(func() { close(r.stop) })
	<-r.done
}

// close writes the file for the last time.
func (r *reached) close(at mark) error {
	err := r.write(at)
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
		r.file = nil
	}
	return err
}

// come returns how far the log has come: what was saved last. After a failed save
// nothing more is known.
func (s *Store) come() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return mark{}
	}
	return mark{s.hard.GetCommit(), s.hard.GetTerm()}
}
