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

// A log that was truncated exactly after a save, or whose last saves were overwritten with
// zeros, looks like a complete older log. If a server started with it, the server would forget
// what it acknowledged, and fences would repeat. So the store also keeps, in a separate file,
// how far the log has come. A log that ends before that is damaged.
//
// The file has two slots, written in turn, each in its own sector. A crash damages at most
// the slot that was being written. Losing a write is harmless: the file then says less than
// it could. Everything it says was durable in the log before.

const (
	reachedName = "reached"
	slotBytes   = 20 // commit index, term, and their CRC-32C
)

// reachedEvery is how often the file is written while the log grows. Saves after the last
// write are not covered, unless Close was called.
var reachedEvery = time.Second

// mark is how far a log has come. Both numbers never decrease. The last index cannot be used,
// because it decreases when another leader replaces entries.
type mark struct{ commit, term uint64 }

func (m mark) less(than mark) bool {
	return m.commit < than.commit || m.commit == than.commit && m.term < than.term
}

func (m mark) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, m.commit)
	b = binary.LittleEndian.AppendUint64(b, m.term)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// reached is the file. While the log is open for writing, a separate goroutine writes the file,
// so that its fsync does not delay that of the log.
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

// readReached reads the file in dir. A missing file has no content.
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

// check refuses a log that ends before the point that it had reached.
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

// write makes the file contain at, unless it contains as much already.
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

// follow regularly writes the result of since to the file, until end. A failure does not affect
// the log: it is logged, and the file stays as it is.
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

// come returns how far the log has come: the last saved state. After a failed save the result
// does not change any more.
func (s *Store) come() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return mark{}
	}
	return mark{s.hard.GetCommit(), s.hard.GetTerm()}
}
