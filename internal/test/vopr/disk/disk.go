// Package disk is the disk of a server in a simulated world.
package disk

import (
	"math/rand/v2"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/machine"
)

const ms = events.Millisecond

// Owner is the server of a disk.
type Owner interface {
	// Saved is an input of the process: writes have finished.
	Saved(done []Write)
	// Full and Fused end the process, because the disk is full or because its fuse has blown.
	Full()
	Fused()
}

// Disk stores what a server saves, according to the contract of internal/service/store. Writes happen one
// after another, and waiting writes share an fsync. A save that need not be durable waits for the
// next one that must be. After a crash, any of the sectors of the current write may be on the disk.
// If the write is incomplete, the checksums of the log detect that, and a restart ignores it.
type Disk struct {
	Contents       // what a restart finds
	Slow     int64 // additional time for each operation
	Full     bool
	// Fuse makes the server crash in the middle of its next write.
	Fuse bool

	run     *events.Run
	rand    *rand.Rand
	machine *machine.Machine
	owner   Owner

	// loose are saves that were written and not synced. A crash loses them, because only the kernel
	// had them in memory.
	loose []Write
	queue []Write
	busy  []Write  // what the current fsync makes durable
	hung  int      // number of faults that make the disk hang
	late  []func() // operations that finish when the disk works again
}

// Contents are what a restart finds.
type Contents struct {
	UID    uint64 // of the directory, or 0 if there is none
	Record founding.Record
	State  agreement.Disk
}

// New returns an empty disk. r is the source of its delays.
func New(run *events.Run, r *rand.Rand, m *machine.Machine, owner Owner) Disk {
	return Disk{run: run, rand: r, machine: m, owner: owner}
}

// Write is a save of the log, a snapshot, a founding record, or the creation of a directory.
type Write struct {
	Save     *agreement.Save
	Snapshot *raftpb.Snapshot
	Record   founding.Record
	UID      uint64
	Kept     func() // called when a restart finds it, unless it is nil
	Then     func() // called at the end, in place of the replica
}

// plain reports whether a write contains only log entries and hard state.
func (x Write) plain() bool { return x.Save != nil && x.Save.Snapshot == nil }

// Fresh reports whether nothing of the cluster was ever saved.
func (c *Contents) Fresh() bool {
	return c.State.HardState == nil && c.State.Snapshot == nil && len(c.State.Entries) == 0
}

// loosely reports whether a crash may lose the write.
func (x Write) loosely() bool { return x.plain() && !x.Save.MustSync }

// Add queues a write.
func (d *Disk) Add(x Write) {
	d.queue = append(d.queue, x)
	d.Begin()
}

// Begin starts the next write. It contains as many saves as one fsync can make durable: saves up to
// one that installs a snapshot, or one snapshot.
func (d *Disk) Begin() {
	if len(d.busy) > 0 || len(d.queue) == 0 || d.machine.Paused {
		return
	}
	n := 1
	for n < len(d.queue) && d.queue[n-1].plain() && d.queue[n].plain() {
		n++
	}
	d.busy = append(d.busy, d.queue[:n]...)
	d.queue = append(d.queue[:0], d.queue[n:]...)
	took := d.latency()
	if d.Fuse {
		d.Fuse = false
		life := d.machine.Life
		d.run.After(d.rand.Int64N(took), func() {
			if d.machine.Life == life {
				d.owner.Fused()
			}
		})
	}
	d.finishAfter(took, d.finish)
}

// finishAfter calls finish after a time, unless the server crashes before. While the disk hangs,
// the call waits.
func (d *Disk) finishAfter(took int64, finish func()) {
	life := d.machine.Life
	d.run.After(took, func() {
		switch {
		case d.machine.Life != life:
		case d.hung > 0:
			d.late = append(d.late, finish)
		default:
			finish()
		}
	})
}

// Hang makes the disk hang until the same number of calls of Release.
func (d *Disk) Hang() { d.hung++ }

// Hangs reports whether the disk hangs.
func (d *Disk) Hangs() bool { return d.hung > 0 }

// Release ends one of the faults that make the disk hang.
func (d *Disk) Release() {
	if d.hung = max(0, d.hung-1); d.hung > 0 {
		return
	}
	late := d.late
	d.late = nil
	for _, finish := range late {
		finish()
	}
}

// AddFile writes the file of a snapshot beside the log. Then it adds its record to the log.
func (d *Disk) AddFile(s *raftpb.Snapshot) {
	d.finishAfter(200_000+d.rand.Int64N(30*ms), func() { d.Add(Write{Snapshot: s}) })
}

// latency returns the random duration of a write. A write without fsync takes almost no time.
func (d *Disk) latency() int64 {
	sync := false
	for _, x := range d.busy {
		sync = sync || !x.loosely()
	}
	if !sync {
		return ms / 50
	}
	took := 200_000 + d.rand.Int64N(2*ms)
	if d.rand.IntN(100) == 0 {
		took += d.rand.Int64N(30 * ms)
	}
	return took + d.Slow*d.rand.Int64N(ms+1)
}

// finish ends a write: the data is durable, and the server is informed.
func (d *Disk) finish() {
	if d.Full {
		d.owner.Full()
		return
	}
	done := d.busy
	d.busy = nil
	d.loose = append(d.loose, done...)
	for _, x := range done {
		if !x.loosely() {
			d.sync()
			break
		}
	}
	d.machine.Take(func() { d.owner.Saved(done) })
	d.Begin()
}

// sync makes all written data durable.
func (d *Disk) sync() {
	for _, x := range d.loose {
		d.keep(x)
	}
	d.loose = d.loose[:0]
}

// keep applies a write to the contents of the disk.
func (d *Disk) keep(x Write) {
	if x.Kept != nil {
		x.Kept()
	}
	switch {
	case x.UID != 0:
		d.UID = x.UID
		return
	case x.Record != nil:
		d.Record = x.Record
		return
	case x.Snapshot != nil:
		d.install(x.Snapshot)
		return
	}
	if x.Save.Snapshot != nil {
		d.install(x.Save.Snapshot)
	}
	if n := len(x.Save.Entries); n > 0 {
		d.State.Entries = append(until(d.State.Entries, x.Save.Entries[0].GetIndex()), x.Save.Entries...)
	}
	if x.Save.HardState != nil {
		d.State.HardState = x.Save.HardState
	}
}

// install stores a snapshot. A restart still finds the later entries of the log. But if the log
// lacks the last entry of the snapshot, it belongs to another history, and install deletes it.
func (d *Disk) install(s *raftpb.Snapshot) {
	index, term := s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm()
	if d.State.Snapshot.GetMetadata().GetIndex() >= index {
		return
	}
	own := slices.ContainsFunc(d.State.Entries, func(e *raftpb.Entry) bool { return e.GetIndex() == index && e.GetTerm() == term })
	d.State.Snapshot, d.State.Entries = s, beyond(d.State.Entries, index)
	if !own {
		if len(d.State.Entries) > 0 {
			d.run.Stats.Replaced++
		}
		d.State.Entries = nil
	}
}

const sector = 512

// Crash loses everything that was not synced. The current write may survive, if by chance all of
// its sectors were written.
func (d *Disk) Crash() {
	whole, some := true, false
	odds := d.rand.IntN(4) // number of sectors written, of three
	for range d.size()/sector + 1 {
		written := d.rand.IntN(3) < odds
		whole, some = whole && written, some || written
	}
	switch {
	case len(d.busy) == 0:
	case whole:
		d.loose = append(d.loose, d.busy...)
		d.sync()
	case some:
		d.run.Stats.Torn++
	default:
		d.run.Stats.Unsynced++
	}
	d.loose, d.queue, d.busy, d.late = nil, nil, nil, nil
}

// size returns the approximate size of the current write in bytes.
func (d *Disk) size() (bytes int) {
	for _, x := range d.busy {
		bytes += proto.Size(x.Snapshot)
		if x.Save != nil {
			bytes += 32 + proto.Size(x.Save.Snapshot)
			for _, e := range x.Save.Entries {
				bytes += 16 + len(e.GetData())
			}
		}
	}
	return bytes
}

func until(entries []*raftpb.Entry, index uint64) []*raftpb.Entry {
	for i, e := range entries {
		if e.GetIndex() >= index {
			return entries[:i]
		}
	}
	return entries
}

func beyond(entries []*raftpb.Entry, index uint64) []*raftpb.Entry {
	for i, e := range entries {
		if e.GetIndex() > index {
			return append([]*raftpb.Entry(nil), entries[i:]...)
		}
	}
	return nil
}
