package node

import (
	"slices"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/store"
)

// maxBacklog bounds the writes that wait for the disk. At the bound the node takes
// no more requests and messages until the disk has caught up.
const maxBacklog = 256

// keeper stores what the node must not forget: a *store.Store, or a store.Memory.
type keeper interface {
	Save(*raftpb.HardState, []*raftpb.Entry, *raftpb.Snapshot, bool) error
	WriteSnapshot(*raftpb.Snapshot) error
	SaveRecord(founding.Record) error
	Seed() ([]byte, error)
	DropSeed() error
	Close() error
}

// open opens the store of this server and returns what it holds.
func (c Config) open(id store.Identity) (keeper, *store.State, error) {
	if c.Memory {
		return store.Memory{}, store.InMemory(), nil
	}
	kept, state, err := store.Open(c.Dir, id, c.Log)
	if err != nil || c.wrap == nil {
		return kept, state, err
	}
	return c.wrap(kept), state, nil
}

// disk writes in order, in its own goroutine (run), and shares one fsync among all writes
// that wait. Another goroutine writes the files of snapshots, which may be large, so
// that saves continue meanwhile.
type disk struct {
	store keeper
	// done receives what was written, in order.
	done chan written
	// working counts run and the goroutine that writes the file of a snapshot.
	working sync.WaitGroup

	mu     sync.Mutex
	wake   sync.Cond
	queue  []write
	closed bool
	// log is what run does, file what the other goroutine does.
	log, file activity
}

// activity is an operation of the disk that may be under way. It is timed by Go's clock, which
// does not count the time in which the machine is suspended.
type activity struct {
	since time.Time // its begin, or zero
	bytes int       // of a snapshot
}

// late returns how long the activity has been under way, if that exceeds limit plus the time
// that a slow disk needs for a snapshot; otherwise 0.
func (a activity) late(limit time.Duration) time.Duration {
	const slowest = 8 << 20 // bytes in a second
	if a.since.IsZero() {
		return 0
	}
	took := time.Since(a.since)
	if took <= limit+time.Duration(a.bytes)*time.Second/slowest {
		return 0
	}
	return took
}

// write is a save of the log, or the log record of a snapshot whose file is written.
type write struct {
	save     *agreement.Save
	snapshot *raftpb.Snapshot
	took     time.Duration // the writing of the file of the snapshot
	err      error         // why it is not written
}

// written is the result of one fsync: what is durable now, or the error.
type written struct {
	writes []write
	synced bool // false if none of them needed an fsync
	took   time.Duration
	err    error
}

func newDisk(s keeper) *disk {
	d := &disk{store: s, done: make(chan written)}
	d.wake.L = &d.mu
	return d
}

// addSaves puts saves in the queue.
func (d *disk) addSaves(saves []*agreement.Save) {
	if len(saves) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, save := range saves {
		d.queue = append(d.queue, write{save: save})
	}
	d.wake.Signal()
}

// add puts a write in the queue.
func (d *disk) add(w write) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, w)
	d.wake.Signal()
}

// addSnapshot writes the file of a snapshot, and then its record in the log. The
// caller must not add another snapshot before this one is done.
func (d *disk) addSnapshot(s *raftpb.Snapshot) {
	d.working.Go(func() {
		begun := time.Now()
		d.setActivity(&d.file, activity{begun, len(s.GetData())})
		err := d.store.WriteSnapshot(s)
		d.setActivity(&d.file, activity{})
		d.add(write{snapshot: s, took: time.Since(begun), err: err})
	})
}

// setActivity sets the operation that is under way.
func (d *disk) setActivity(at *activity, a activity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*at = a
}

// late returns which write has been under way for longer than limit, and for how long. It
// returns 0 if there is none.
func (d *disk) late(limit time.Duration) (what string, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if took := d.log.late(limit); took > 0 {
		return "a write to the data directory", took
	}
	return "a write of a snapshot to the data directory", d.file.late(limit)
}

// behind reports whether the backlog of the disk is full.
func (d *disk) behind() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue) > maxBacklog
}

// close ends run; queued writes are dropped.
func (d *disk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.wake.Signal()
}

// run writes until close is called or a write fails. If nobody takes the results, stop
// ends its wait.
func (d *disk) run(stop <-chan struct{}) {
	for {
		writes := d.take()
		if writes == nil {
			return
		}
		begun := time.Now()
		result := written{writes: writes, synced: slices.ContainsFunc(writes, write.durable), err: d.write(writes)}
		result.took = time.Since(begun)
		d.setActivity(&d.log, activity{})
		select {
		case d.done <- result:
		case <-stop:
			return
		}
		if result.err != nil {
			return
		}
	}
}

// take waits for work and returns as much as one fsync can serve: either saves, ending
// with one that installs a snapshot if there is one, or the record of one snapshot.
func (d *disk) take() []write {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) == 0 && !d.closed {
		d.wake.Wait()
	}
	if d.closed {
		return nil
	}
	n := 1
	for n < len(d.queue) && d.queue[n-1].plain() && d.queue[n].plain() {
		n++
	}
	writes := d.queue[:n:n]
	d.queue = d.queue[n:]
	d.log = activity{since: time.Now()}
	if first := writes[0]; first.save != nil {
		d.log.bytes = len(first.save.Snapshot.GetData())
	}
	return writes
}

// rest empties the queue, and returns its writes in order. A server in memory, which does not use
// run, calls it.
func (d *disk) rest() []write {
	d.mu.Lock()
	defer d.mu.Unlock()
	writes := d.queue
	d.queue = nil
	return writes
}

// plain reports whether w changes the log only.
func (w write) plain() bool { return w.snapshot == nil && w.save.Snapshot == nil }

// durable reports whether w needs an fsync.
func (w write) durable() bool { return !w.plain() || w.save.MustSync }

func (d *disk) write(writes []write) error {
	first := writes[0]
	if first.err != nil {
		return first.err
	}
	if first.snapshot != nil {
		return d.store.Save(nil, nil, first.snapshot, true)
	}
	var (
		state   *raftpb.HardState
		entries []*raftpb.Entry
		sync    bool
	)
	for _, w := range writes {
		if w.save.HardState != nil {
			state = w.save.HardState
		}
		entries = append(entries, w.save.Entries...)
		sync = sync || w.save.MustSync
	}
	return d.store.Save(state, entries, first.save.Snapshot, sync)
}
