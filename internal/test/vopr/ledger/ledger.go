// Package ledger records the logs of servers, for those who judge them.
package ledger

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/agreement"
)

// Ledger is a record of the log of a server since its start. It has a number for each entry that
// identifies its contents.
type Ledger struct {
	base  uint64 // the index before the first mark
	marks []uint64
	all   []*raftpb.Entry // the entries of the marks
}

// Begin starts the record with what a disk has.
func (l *Ledger) Begin(d agreement.Disk) {
	l.base, l.marks, l.all = d.Snapshot.GetMetadata().GetIndex(), nil, nil
	l.add(d.Entries)
}

// Append records what a server writes to its log.
func (l *Ledger) Append(save *agreement.Save) {
	if save.Snapshot != nil {
		l.base, l.marks, l.all = save.Snapshot.GetMetadata().GetIndex(), nil, nil
	}
	l.add(save.Entries)
}

func (l *Ledger) add(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetIndex() <= l.base {
			continue
		}
		l.marks = append(l.marks[:e.GetIndex()-l.base-1], Mark(e))
		l.all = append(l.all[:e.GetIndex()-l.base-1], e)
	}
}

// At returns the mark of an entry. It returns false if the ledger does not contain the index.
func (l *Ledger) At(index uint64) (uint64, bool) {
	if index <= l.base || index > l.base+uint64(len(l.marks)) {
		return 0, false
	}
	return l.marks[index-l.base-1], true
}

// Entry returns an entry, or nil.
func (l *Ledger) Entry(index uint64) *raftpb.Entry {
	if index <= l.base || index > l.base+uint64(len(l.all)) {
		return nil
	}
	return l.all[index-l.base-1]
}

// Trim deletes all entries except the newest.
func (l *Ledger) Trim(most int) {
	if drop := len(l.marks) - most; drop > most {
		l.base += uint64(drop)
		l.marks, l.all = slices.Clone(l.marks[drop:]), slices.Clone(l.all[drop:])
	}
}

// Mark returns the number of an entry.
func Mark(e *raftpb.Entry) uint64 {
	h := 0xcbf29ce484222325 ^ e.GetTerm()*0x9e3779b97f4a7c15
	for _, b := range e.GetData() {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return h
}
