package lab

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/kit/cgroup"
)

// memoryLimit returns how many bytes the process may use: those of --memory, or less if a cgroup allows
// less.
func (c *checking) memoryLimit() int64 {
	limit := c.memory << 20
	if most, limited := allowedByCgroup(); limited && most < limit {
		limit = most
		c.Say("a control group limits the memory: the search uses at most %d MiB", limit>>20)
	}
	return limit
}

// allowedByCgroup returns how many bytes of memory this process may use because of its cgroups, without
// what Go does not count, such as its code and page tables.
func allowedByCgroup() (bytes int64, limited bool) {
	allowed, limited := cgroup.Memory(os.DirFS("/"))
	return max(allowed-max(allowed/16, 8<<20), 0), limited
}

// roomInCgroup returns a function that reports whether the process may allocate further bytes, or nil if
// no cgroup limits its memory. The garbage collector keeps to the limit until restore is called.
func roomInCgroup() (room func(bytes int64) bool, restore func()) {
	limit, limited := allowedByCgroup()
	if !limited {
		return nil, func() {}
	}
	before := debug.SetMemoryLimit(limit)
	return newAllowance(limit).room, func() { debug.SetMemoryLimit(before) }
}

// allowance measures the memory of the process against a limit.
type allowance struct {
	limit int64

	mu      sync.Mutex
	samples []metrics.Sample
	checked time.Time // when it was last measured
}

// checkEvery is the time between two measurements if nothing large is allocated.
const checkEvery = time.Millisecond

func newAllowance(limit int64) *allowance {
	return &allowance{limit: limit, samples: []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}}
}

// room reports whether the process may allocate further bytes. Garbage that is not collected yet is
// collected first.
func (a *allowance) room(bytes int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if bytes == 0 && now.Sub(a.checked) < checkEvery {
		return true
	}
	a.checked = now
	if a.used()+bytes <= a.limit {
		return true
	}
	debug.FreeOSMemory()
	return a.used()+bytes <= a.limit
}

// used returns the memory of the process, in bytes.
func (a *allowance) used() int64 {
	metrics.Read(a.samples)
	return int64(a.samples[0].Value.Uint64() - a.samples[1].Value.Uint64())
}
