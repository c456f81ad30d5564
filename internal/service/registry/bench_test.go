package registry

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// numbered returns the session of a number.
func numbered(n int) (id SessionID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	return id
}

// withSessions returns a registry with n open sessions.
func withSessions(n int) *Registry {
	r := New()
	batch := Batch{Commands: make([]Command, n)}
	for i := range n {
		batch.Commands[i] = Command{Op: OpOpen, Session: numbered(i), Sequence: 1, TTL: 10e9, Host: "host", Program: "program"}
	}
	r.Apply(1, &batch, new(Effects))
	return r
}

// BenchmarkUncontended acquires and releases a lock that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	r := withSessions(1)
	var fx Effects
	batch := Batch{Commands: make([]Command, 2)}
	b.ReportAllocs()
	sequence := uint64(2)
	for b.Loop() {
		batch.Commands[0] = Command{Op: OpAcquire, Session: numbered(0), Sequence: sequence, Low: sequence, Name: "nightly"}
		batch.Commands[1] = Command{Op: OpRelease, Session: numbered(0), Sequence: sequence + 1, Low: sequence + 1, Hold: sequence}
		fx.Reset()
		r.Apply(1, &batch, &fx)
		sequence += 2
	}
	requireSound(b, r)
}

// BenchmarkContended hands one lock on from session to session while 64 wait:
// the holder releases and queues up again.
func BenchmarkContended(b *testing.B) {
	const waiters = 64
	r := withSessions(waiters + 1)
	var fx Effects
	claims := make([]uint64, waiters+1)
	queueUp := func(who int) Command {
		claims[who] += 2
		return Command{Op: OpAcquire, Session: numbered(who), Sequence: claims[who], Low: claims[who], Name: "nightly"}
	}
	for who := range waiters + 1 {
		r.Apply(1, &Batch{Commands: []Command{queueUp(who)}}, &fx)
	}
	batch := Batch{Commands: make([]Command, 2)}
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		who := turn % (waiters + 1)
		hold := claims[who]
		batch.Commands[0] = Command{Op: OpRelease, Session: numbered(who), Sequence: hold + 1, Low: hold + 1, Hold: hold}
		batch.Commands[1] = queueUp(who)
		fx.Reset()
		r.Apply(1, &batch, &fx)
		turn++
	}
	requireSound(b, r)
	if r.Counts().Waiters != waiters || r.Counts().Fence&(1<<counterBits-1) != uint64(turn)+1 {
		b.Fatalf("after %d turns: %+v", turn, r.Counts())
	}
}

// BenchmarkExpiry ends 10,000 sessions in one entry: all wait for one lock, the
// worst case, or each holds one of its own.
func BenchmarkExpiry(b *testing.B) {
	const sessions = 10_000
	for _, shape := range []struct {
		name string
		lock func(i int) string
	}{
		{"one_queue", func(int) string { return "nightly" }},
		{"own_locks", func(i int) string { return fmt.Sprintf("lock/%d", i) }},
	} {
		b.Run(shape.name, func(b *testing.B) {
			expiry := Command{Op: OpExpire, Term: 1}
			for i := range sessions {
				expiry.Verdicts = append(expiry.Verdicts, Verdict{Session: numbered(i), Renewals: uint64(i) + 1})
			}
			for b.Loop() {
				b.StopTimer()
				r := withSessions(sessions)
				var fx Effects
				for i := range sessions {
					r.Apply(1, &Batch{Commands: []Command{{Op: OpAcquire, Session: numbered(i), Sequence: 2, Name: shape.lock(i)}}}, &fx)
				}
				fx.Reset()
				b.StartTimer()
				r.Apply(1, &Batch{Commands: []Command{expiry}}, &fx)
				if r.Counts().Sessions+r.Counts().Locks != 0 {
					b.Fatalf("left over: %+v", r.Counts())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sessions, "ns/session")
		})
	}
}

// withLocks returns a registry in which 1,000 sessions hold n locks.
func withLocks(n int) *Registry {
	const sessions = 1000
	r := withSessions(sessions)
	var fx Effects
	for i := range n {
		sequence := uint64(2 + i/sessions)
		fx.Reset()
		r.Apply(1, &Batch{Commands: []Command{{
			Op: OpAcquire, Session: numbered(i % sessions), Sequence: sequence, Low: sequence, Name: fmt.Sprintf("lock/%06d", i),
		}}}, &fx)
	}
	return r
}

// BenchmarkEncode encodes 100,000 held locks, which stops a server for as long.
func BenchmarkEncode(b *testing.B) {
	const locks = 100_000
	r := withLocks(locks)
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		size = len(r.Freeze().Encode())
	}
	b.ReportMetric(float64(size)/locks, "B/lock")
}

func BenchmarkDecode(b *testing.B) {
	encoded := withLocks(100_000).Freeze().Encode()
	b.SetBytes(int64(len(encoded)))
	for b.Loop() {
		if _, err := Decode(encoded); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory reports what a held lock costs, name included.
func BenchmarkMemory(b *testing.B) {
	const locks = 100_000
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := withLocks(locks)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(r)
	}
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/locks, "B/lock")
}

// BenchmarkLongestEntry reports the longest time that one entry takes while 1,000,000 locks are
// taken. All clients of a server wait for so long.
func BenchmarkLongestEntry(b *testing.B) {
	const locks = 1_000_000
	for b.Loop() {
		r := withSessions(1)
		var fx Effects
		var longest time.Duration
		for i := range locks {
			fx.Reset()
			batch := Batch{Commands: []Command{{
				Op: OpAcquire, Session: numbered(0), Sequence: uint64(i) + 2, Low: uint64(i) + 2, Name: fmt.Sprint("lock/", i),
			}}}
			start := time.Now()
			r.Apply(1, &batch, &fx)
			longest = max(longest, time.Since(start))
		}
		b.ReportMetric(longest.Seconds()*1e3, "longest-ms")
	}
}

func requireSound(b testing.TB, r *Registry) {
	if err := r.Check(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRank finds the longest queues among as many locks as Rank looks at.
func BenchmarkRank(b *testing.B) {
	v := New().Freeze()
	holder := &claim{session: &session{party: newParty("", "", 0, "")}, extras: new(extras)}
	all := make([]*resource, MaxRanked)
	for i := range all {
		all[i] = &resource{class: Lock, name: fmt.Sprintf("%07d", i), one: [1]*claim{holder}}
	}
	v.names.Fill(all)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := v.Rank(Lock, "", ByQueue, 50, 1); !ok {
			b.Fatal("there are too many")
		}
	}
}
