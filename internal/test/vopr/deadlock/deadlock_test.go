package deadlock

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
)

// An epoch begins at the end of an entry. The judge of deadlocks identifies holds by their fences.
// So its epochs must be those of the servers. In seed 3140 of the plans with -live they differed: a
// request that keeps the hold of another program seemed to complete a deadlock.
func TestJudgeHasTheEpochsOfTheServers(t *testing.T) {
	run := events.New(nil, events.Promises)
	judge, server := New(run, nil, true), registry.New()
	id := registry.SessionID{1}
	entries := [][]registry.Command{
		{{Op: registry.OpLevel, From: 1, To: version.Guarded}},
		{
			{Op: registry.OpOpen, Session: id, Sequence: 1, TTL: registry.MaxTTL},
			{Op: registry.OpGuard, Name: "live/", Guarding: &registry.Guarding{Use: view.Use{Algorithm: "central"}}, By: &registry.Origin{Request: [16]byte{1}}},
			{Op: registry.OpAcquire, Session: id, Sequence: 2, Name: "a"},
		},
	}
	for i, commands := range entries {
		b := registry.Batch{Commands: commands}
		level, _ := server.Level()
		term, kind := uint64(1), raftpb.EntryNormal
		judge.apply(&raftpb.Entry{Term: &term, Type: &kind, Data: b.Append(nil, level)})

		server.Apply(term, &b, new(registry.Effects))
		if string(judge.reg.Freeze().Encode()) != string(server.Freeze().Encode()) || run.Found != nil {
			t.Fatalf("after entry %d the judge is in another state than a server: %v", i+1, run.Found)
		}
	}
	held, _, _ := judge.reg.Freeze().Explain(registry.Lock, "a", 0)
	if server.Guarded().Epoch == 0 || len(held.Holders) != 1 || held.Holders[0].Fence>>40 >= server.Guarded().Epoch {
		t.Errorf("epoch %d, %+v: want a hold of the epoch before", server.Guarded().Epoch, held)
	}
}
