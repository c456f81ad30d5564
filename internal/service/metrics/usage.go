package metrics

import (
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/service/store"
)

const (
	// usageAge is how old figures of the disk may be.
	usageAge = 5 * time.Second
	// usageTimeout is how long a caller waits for the disk, which may hang.
	usageTimeout = 200 * time.Millisecond
)

// usage is the disk usage of the data directory.
type usage struct {
	mu     sync.Mutex
	looked time.Time
	done   chan struct{} // closed when the last measurement has ended
	found  *room         // the last measurement, or nil
}

// room is the usage of the disk, in bytes.
type room struct {
	all, log, snapshots int64 // of the data directory
	free, size          int64 // of the file system, 0 if that is unknown
}

// of returns the usage of the disk by a data directory; nil if it is not known or there is no disk. It does not
// wait for a disk that hangs.
func (u *usage) of(dir string) *room {
	if dir == "" {
		return nil
	}
	u.mu.Lock()
	if u.done == nil || time.Since(u.looked) > usageAge && ended(u.done) {
		u.looked, u.done = time.Now(), make(chan struct{})
		go u.look(dir)
	}
	done := u.done
	u.mu.Unlock()
	timer := time.NewTimer(usageTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.found
}

func (u *usage) look(dir string) {
	found := new(room)
	found.all, found.log, found.snapshots = store.Usage(dir)
	found.free, found.size = fileSystem(dir)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.found = found
	close(u.done)
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
