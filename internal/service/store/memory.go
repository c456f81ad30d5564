package store

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/founding"
)

// Memory replaces a Store for a server that may forget everything when it stops. Saved data
// need not be kept here: raft has it in memory as long as the process lives, and nobody asks for
// it afterwards.
type Memory struct{}

// InMemory returns the State with which such a server always starts.
func InMemory() *State { return &State{Fresh: true, UID: drawUID()} }

// Save does nothing.
func (Memory) Save(*raftpb.HardState, []*raftpb.Entry, *raftpb.Snapshot, bool) error { return nil }

// WriteSnapshot does nothing.
func (Memory) WriteSnapshot(*raftpb.Snapshot) error { return nil }

// SaveRecord does nothing.
func (Memory) SaveRecord(founding.Record) error { return nil }

// Seed returns nil.
func (Memory) Seed() ([]byte, error) { return nil, nil }

// DropSeed does nothing.
func (Memory) DropSeed() error { return nil }

// Close does nothing.
func (Memory) Close() error { return nil }
