package host

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// BenchmarkNear is a Lock and an Unlock of a program within the process of the server.
func BenchmarkNear(b *testing.B) {
	l := alone(b, Config{}, central)
	n := &near.Hold{Name: "a/1", Owner: new(near.Owner)}
	for b.Loop() {
		if !l.Lock(l.now, n) {
			b.Fatal("it is not granted")
		}
		l.Unlock(l.now, n)
	}
}

// BenchmarkClient is an acquire and a release of a client.
func BenchmarkClient(b *testing.B) {
	l := alone(b, Config{}, central)
	for b.Loop() {
		got := l.submit(registry.Command{Op: registry.OpAcquire, Name: "a/1", Low: l.number + 1})
		left := l.submit(registry.Command{Op: registry.OpRelease, Hold: l.number, Low: l.number + 1})
		if got.Code != registry.OK || left.Code != registry.OK {
			b.Fatalf("codes %d and %d", got.Code, left.Code)
		}
	}
}

// BenchmarkMembers is a schedule of several members, with faults.
func BenchmarkMembers(b *testing.B) {
	for b.Loop() {
		w := newWorld(7, served.Locks[0], 3, false)
		if w.run(800); w.bad != "" {
			b.Fatal(w.bad)
		}
	}
}
