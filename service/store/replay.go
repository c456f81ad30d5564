package store

import "go.etcd.io/raft/v3/raftpb"

// replay follows the log through its records as raft had it when they were written,
// and so knows which entries on disk are still part of it.
//
// What the wal package reads is not enough: it returns every entry beyond the newest
// snapshot. But if the leader sends a snapshot to a server whose log does not have the
// snapshot's last entry, raft drops the whole log, also what lies beyond; until an
// entry is written in its place, that still stands in the file, before the snapshot's
// record. A server that took it up again would vote by a log that it has not got.
// Nothing is dropped for a snapshot that the server made of its own log.
type replay struct {
	first uint64   // the index of terms[0]
	terms []uint64 // of the entries in a row, as far as they are known
}

// last is the index of the last entry, or of the snapshot if there is none after it; 0
// of an empty log.
func (r *replay) last() uint64 {
	if len(r.terms) == 0 {
		return 0
	}
	return r.first + uint64(len(r.terms)) - 1
}

// entry takes in an entry, which replaces all that come after it.
func (r *replay) entry(at position) {
	if len(r.terms) == 0 || at.index < r.first || at.index > r.last()+1 {
		r.first, r.terms = at.index, r.terms[:0]
	}
	r.terms = append(r.terms[:at.index-r.first], at.term)
}

// snapshot takes in a snapshot. One that ends before the first entry known is of a log
// whose beginning has been removed, and old: there are newer ones.
func (r *replay) snapshot(at position) {
	known := len(r.terms) > 0
	if known && (at.index < r.first || at.index <= r.last() && r.terms[at.index-r.first] == at.term) {
		return
	}
	r.first, r.terms = at.index, append(r.terms[:0], at.term)
}

// cut returns those of the entries after an index that are part of the log still.
func (r *replay) cut(entries []*raftpb.Entry, after uint64) []*raftpb.Entry {
	switch n := r.last() - after; {
	case n >= uint64(len(entries)):
		return entries
	case n > 0:
		return entries[:n:n]
	}
	return nil
}
