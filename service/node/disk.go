package node

import (
	"sync"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/service/agreement"
	"github.com/conclave-io/conclave/service/founding"
	"github.com/conclave-io/conclave/service/store"
)

// maxBacklog bounds the writes that wait for the disk. Beyond it the node takes
// no more requests or messages until the disk has caught up.
const maxBacklog = 256

// keeper keeps what the node must not forget: a *store.Store, or a store.Memory.
type keeper interface {
	Save(*raftpb.HardState, []*raftpb.Entry, *raftpb.Snapshot, bool) error
	SaveRecord(founding.Record) error
	Close() error
}

// open opens what keeps the state of this server, and returns what it holds.
func (c Config) open(id store.Identity) (keeper, *store.State, error) {
	if c.Memory {
		return store.Memory{}, store.InMemory(), nil
	}
	return store.Open(c.Dir, id, c.Log)
}

// disk writes in order, in a goroutine of its own, and lets everything that
// waits share one fsync.
type disk struct {
	store keeper
	// done receives what was written, in order.
	done chan written

	mu     sync.Mutex
	wake   sync.Cond
	queue  []write
	closed bool
}

// write is a save of the log, or a snapshot.
type write struct {
	save     *agreement.Save
	snapshot *raftpb.Snapshot
}

// written is what one fsync made durable, or why it did not.
type written struct {
	writes []write
	err    error
}

func newDisk(s keeper) *disk {
	d := &disk{store: s, done: make(chan written)}
	d.wake.L = &d.mu
	return d
}

// add puts writes in the queue.
func (d *disk) add(writes ...write) {
	if len(writes) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, writes...)
	d.wake.Signal()
}

// behind reports whether the disk should not be given more.
func (d *disk) behind() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue) > maxBacklog
}

// close lets run end; what is queued is no longer written.
func (d *disk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.wake.Signal()
}

// run writes until close, or until a write fails. stop ends its wait for
// somebody to take the result.
func (d *disk) run(stop <-chan struct{}) {
	for {
		writes := d.take()
		if writes == nil {
			return
		}
		result := written{writes: writes, err: d.write(writes)}
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

// take waits for work and returns as much as one fsync can serve: saves up to
// one that installs a snapshot, or one snapshot.
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
	return writes
}

// plain reports whether w has nothing but log.
func (w write) plain() bool { return w.snapshot == nil && w.save.Snapshot == nil }

func (d *disk) write(writes []write) error {
	first := writes[0]
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
