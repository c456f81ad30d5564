package store

import "go.etcd.io/raft/v3/raftpb"

// replay follows the log through its records as raft had it when they were written, so it knows
// which entries on disk are still part of the log.
//
// The results of the wal package are not enough: it returns every entry beyond the newest
// snapshot. If the leader sends a snapshot to a server whose log does not have the snapshot's last
// entry, raft drops the whole log, including entries beyond the snapshot. These entries are still
// in the file, before the record of the snapshot, until others are written in their place. A
// server that used them again would vote with a log that it does not have. For a snapshot that
// the server made of its own log nothing is dropped.
type replay struct {
	first uint64   // the index of terms[0]
	terms []uint64 // of consecutive entries, as far as they are known
}

// last is the index of the last entry, or of the snapshot if no entry follows it; 0 for an
// empty log.
func (r *replay) last() uint64 {
	if len(r.terms) == 0 {
		return 0
	}
	return r.first + uint64(len(r.terms)) - 1
}

// entry adds an entry, which replaces all entries from its index on.
func (r *replay) entry(at position) {
	if len(r.terms) == 0 || at.index < r.first || at.index > r.last()+1 {
		r.first, r.terms = at.index, r.terms[:0]
	}
	r.terms = append(r.terms[:at.index-r.first], at.term)
}

// snapshot adds a snapshot. One that ends before the first known entry belongs to a part of the
// log that was removed: there are newer snapshots.
func (r *replay) snapshot(at position) {
	known := len(r.terms) > 0
	if known && (at.index < r.first || at.index <= r.last() && r.terms[at.index-r.first] == at.term) {
		return
	}
	r.first, r.terms = at.index, append(r.terms[:0], at.term)
}

// cut returns the entries after an index that are still part of the log.
func (r *replay) cut(entries []*raftpb.Entry, after uint64) []*raftpb.Entry {
	switch n := r.last() - after; {
	case n >= uint64(len(entries)):
		return entries
	case n > 0:
		return entries[:n:n]
	}
	return nil
}
