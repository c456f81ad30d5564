package world

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/founding"
)

// disk stores what a server saves, according to the contract of internal/service/store. Writes happen one
// after another, and waiting writes share an fsync. A save that need not be durable waits for the
// next one that must be. After a crash, any of the sectors of the current write may be on the disk.
// If the write is incomplete, the checksums of the log detect that, and a restart ignores it.
type disk struct {
	w     *World
	owner *Server

	// The state that a restart finds. uid is that of the directory, or 0 if there is none.
	uid    uint64
	record founding.Record
	kept   agreement.Disk
	// loose are saves that were written and not synced. A crash loses them, because only the kernel
	// had them in memory.
	loose []write
	queue []write
	busy  []write // what the current fsync makes durable
	slow  int64   // additional time for each operation
	full  bool
	hung  int      // number of faults that make the disk hang
	late  []func() // operations that finish when the disk works again
	// fuse makes the server crash in the middle of its next write.
	fuse bool
}

// write is a save of the log, a snapshot, a founding record, or the creation of a directory.
type write struct {
	save     *agreement.Save
	snapshot *raftpb.Snapshot
	founds   bool // the snapshot with which a founder begins
	record   founding.Record
	uid      uint64
	then     func() // called at the end, in place of the replica
}

// plain reports whether a write contains only log entries and hard state.
func (x write) plain() bool { return x.save != nil && x.save.Snapshot == nil }

// fresh reports whether nothing of the cluster was ever saved.
func (d *disk) fresh() bool {
	return d.kept.HardState == nil && d.kept.Snapshot == nil && len(d.kept.Entries) == 0
}

// loosely reports whether a crash may lose the write.
func (x write) loosely() bool { return x.plain() && !x.save.MustSync }

func (d *disk) add(x write) {
	d.queue = append(d.queue, x)
	d.begin()
}

// begin starts the next write. It contains as many saves as one fsync can make durable: saves up to
// one that installs a snapshot, or one snapshot.
func (d *disk) begin() {
	if len(d.busy) > 0 || len(d.queue) == 0 || d.owner.Paused {
		return
	}
	n := 1
	for n < len(d.queue) && d.queue[n-1].plain() && d.queue[n].plain() {
		n++
	}
	d.busy = append(d.busy, d.queue[:n]...)
	d.queue = append(d.queue[:0], d.queue[n:]...)
	took := d.latency()
	owner, life := d.owner, d.owner.Life
	if d.fuse {
		d.fuse = false
		d.w.After(d.w.disks.Int64N(took), func() {
			if owner.Life == life && !d.w.Healed { // after the healing, nothing would start it again
				owner.Crash()
			}
		})
	}
	d.finishAfter(took, d.finish)
}

// finishAfter calls finish after a time, unless the server crashes before. While the disk hangs,
// the call waits.
func (d *disk) finishAfter(took int64, finish func()) {
	life := d.owner.Life
	d.w.After(took, func() {
		switch {
		case d.owner.Life != life:
		case d.hung > 0:
			d.late = append(d.late, finish)
		default:
			finish()
		}
	})
}

// release ends one of the faults that make the disk hang.
func (d *disk) release() {
	if d.hung = max(0, d.hung-1); d.hung > 0 {
		return
	}
	late := d.late
	d.late = nil
	for _, finish := range late {
		finish()
	}
	if d.owner.held == 0 {
		d.owner.start()
	}
}

// addFile writes the file of a snapshot beside the log. Then it adds its record to the log.
func (d *disk) addFile(s *raftpb.Snapshot) {
	d.finishAfter(200_000+d.w.disks.Int64N(30*ms), func() { d.add(write{snapshot: s}) })
}

// latency returns the random duration of a write. A write without fsync takes almost no time.
func (d *disk) latency() int64 {
	sync := false
	for _, x := range d.busy {
		sync = sync || !x.loosely()
	}
	if !sync {
		return ms / 50
	}
	took := 200_000 + d.w.disks.Int64N(2*ms)
	if d.w.disks.IntN(100) == 0 {
		took += d.w.disks.Int64N(30 * ms)
	}
	return took + d.slow*d.w.disks.Int64N(ms+1)
}

// finish ends a write: the data is durable, and the server is informed.
func (d *disk) finish() {
	if d.full {
		d.owner.stopForWant()
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
	d.owner.Take(func() { d.owner.saved(done) })
	d.begin()
}

// sync makes all written data durable.
func (d *disk) sync() {
	for _, x := range d.loose {
		d.keep(x)
	}
	d.loose = d.loose[:0]
}

// keep applies a write to the contents of the disk.
func (d *disk) keep(x write) {
	switch {
	case x.uid != 0:
		d.uid = x.uid
		return
	case x.record != nil:
		d.record = x.record
		return
	case x.snapshot != nil:
		if x.founds {
			d.w.Judge.founds(d.owner)
		}
		d.install(x.snapshot)
		return
	}
	if x.save.Snapshot != nil {
		d.install(x.save.Snapshot)
	}
	if n := len(x.save.Entries); n > 0 {
		d.kept.Entries = append(until(d.kept.Entries, x.save.Entries[0].GetIndex()), x.save.Entries...)
	}
	if x.save.HardState != nil {
		d.kept.HardState = x.save.HardState
	}
}

// install stores a snapshot. A restart still finds the later entries of the log. But if the log
// lacks the last entry of the snapshot, it belongs to another history, and install deletes it.
func (d *disk) install(s *raftpb.Snapshot) {
	index, term := s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm()
	if d.kept.Snapshot.GetMetadata().GetIndex() >= index {
		return
	}
	own := slices.ContainsFunc(d.kept.Entries, func(e *raftpb.Entry) bool { return e.GetIndex() == index && e.GetTerm() == term })
	d.kept.Snapshot, d.kept.Entries = s, beyond(d.kept.Entries, index)
	if !own {
		if len(d.kept.Entries) > 0 {
			d.w.Stats.Replaced++
		}
		d.kept.Entries = nil
	}
}

const sector = 512

// crash loses everything that was not synced. The current write may survive, if by chance all of
// its sectors were written.
func (d *disk) crash() {
	whole, some := true, false
	odds := d.w.disks.IntN(4) // number of sectors written, of three
	for range d.size()/sector + 1 {
		written := d.w.disks.IntN(3) < odds
		whole, some = whole && written, some || written
	}
	switch {
	case len(d.busy) == 0:
	case whole:
		d.loose = append(d.loose, d.busy...)
		d.sync()
	case some:
		d.w.Stats.Torn++
	default:
		d.w.Stats.Unsynced++
	}
	d.loose, d.queue, d.busy, d.late = nil, nil, nil, nil
}

// size returns the approximate size of the current write in bytes.
func (d *disk) size() (bytes int) {
	for _, x := range d.busy {
		bytes += proto.Size(x.snapshot)
		if x.save != nil {
			bytes += 32 + proto.Size(x.save.Snapshot)
			for _, e := range x.save.Entries {
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
