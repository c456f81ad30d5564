package transport

import (
	"sync/atomic"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// BenchmarkRoundTrip is one heartbeat and its answer at a time.
func BenchmarkRoundTrip(b *testing.B) {
	var first, second *server
	back := make(chan struct{}, 1)
	first, second = pair(b, func(c *Config) {
		r := &recorder{echo: func(*raftpb.Message) { back <- struct{}{} }}
		if c.Self.Server == 2 {
			r.echo = func(m *raftpb.Message) { second.Send([]*raftpb.Message{heartbeat(2, 1, m.GetIndex())}) }
		}
		c.Handler = r
	})
	there := []*raftpb.Message{heartbeat(1, 2, 1)}
	b.ReportAllocs()
	for b.Loop() {
		first.Send(there)
		<-back
	}
}

// BenchmarkHeartbeats and BenchmarkAppends are messages one way, as many as
// the queue takes.
func BenchmarkHeartbeats(b *testing.B) { stream(b, heartbeat(1, 2, 1)) }

func BenchmarkAppends64x128(b *testing.B) {
	m := heartbeat(1, 2, 1)
	m.Type = raftpb.MsgApp.Enum()
	for i := range uint64(64) {
		m.Entries = append(m.Entries, &raftpb.Entry{Index: new(i + 2), Term: new(uint64(1)), Data: make([]byte, 128)})
	}
	stream(b, m)
}

func stream(b *testing.B, m *raftpb.Message) {
	const window = 1024
	var arrived atomic.Int64
	tokens := make(chan struct{}, window)
	for range window {
		tokens <- struct{}{}
	}
	first, _ := pair(b, func(c *Config) {
		c.Handler = &recorder{echo: func(*raftpb.Message) {
			arrived.Add(1)
			tokens <- struct{}{}
		}}
	})
	batch := []*raftpb.Message{m}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		<-tokens
		first.Send(batch)
	}
	for range window {
		<-tokens
	}
	b.ReportMetric(float64(arrived.Load())/b.Elapsed().Seconds(), "messages/s")
}
