package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/version"
)

// A request to acquire names the holds that its caller keeps while it waits. The session
// alone does not show that: its goroutines share it, and one may release while another waits.

// MaxKeeps bounds the holds that a request names.
const MaxKeeps = 64

// Kept names a hold that a caller keeps while it waits.
type Kept struct {
	Class Class
	Name  string
	Fence uint64
}

func (k *Kept) key() key { return key{k.Class, k.Name} }

func (k *Kept) hash() uint64 { return sum(k.key().sum(), k.Fence) }

// keeping has the holds that a waiter keeps: at least one, in the order of fences. Some may
// have ended since.
type keeping struct{ holds []Kept }

// edge means that a waiter keeps a hold; it also has what the waiter waits for.
type edge struct {
	hold  key
	fence uint64
	wait  ClaimID
	of    key
}

func (e edge) before(other edge) bool {
	return cmp.Or(
		cmp.Compare(e.hold.class, other.hold.class), strings.Compare(e.hold.name, other.hold.name),
		cmp.Compare(e.fence, other.fence), compareClaims(e.wait, other.wait)) < 0
}

// KeepsSize returns the approximate size of the holds that a command names.
func (c *Command) KeepsSize() int { return sizeOf(c.Keeps) }

func sizeOf(keeps []Kept) (n int) {
	for i := range keeps {
		n += 10 + len(keeps[i].Name)
	}
	return n
}

// link adds the holds that a waiter keeps to the graph.
func (x *indexes) link(c *claim) {
	for _, k := range c.keeps.holds {
		x.graph.Put(edge{k.key(), k.Fence, c.id(), c.resource.key()})
	}
}

// unlink removes the holds that a waiter keeps from the graph.
func (x *indexes) unlink(c *claim) {
	if c.keeps == nil {
		return
	}
	for _, k := range c.keeps.holds {
		x.graph.Remove(edge{k.key(), k.Fence, c.id(), c.resource.key()})
	}
}

// keeping returns which of the named holds exist and belong to the same principal as the
// session that names them. The others are ignored: they have ended, are about to end, or
// belong to somebody else.
func (st *state) keeping(s *session, named []Kept) *keeping {
	var holds []Kept
	for _, k := range named {
		res := st.find(k.Class, k.Name)
		if res == nil {
			continue
		}
		if c := res.holder(k.Fence); c != nil && !c.revoked && c.session.owner == s.owner {
			holds = append(holds, Kept{res.class, res.name, k.Fence})
		}
	}
	if len(holds) == 0 {
		return nil
	}
	slices.SortFunc(holds, func(a, b Kept) int { return cmp.Compare(a.Fence, b.Fence) })
	return &keeping{slices.Compact(holds)}
}

// holder returns the holder with a fence, or nil.
func (res *resource) holder(fence uint64) *claim {
	holders := res.holders()
	i, found := slices.BinarySearchFunc(holders, fence, func(c *claim, fence uint64) int { return cmp.Compare(c.fence, fence) })
	if !found {
		return nil
	}
	return holders[i]
}

// forgetKeeps removes the holds kept by all waiters, because the cluster goes down to a
// level without them.
func (st *state) forgetKeeps() {
	var waits []edge
	st.graph.Scan(func(e edge) bool {
		waits = append(waits, e)
		return true
	})
	st.graph.Clear()
	for _, e := range waits {
		res := st.thaw(st.find(e.of.class, e.of.name))
		res.countQueue()
		at := slices.IndexFunc(res.queue(), func(c *claim) bool { return c.id() == e.wait })
		if c := res.queue()[at]; c.keeps != nil {
			c = c.amended(func(t *extras) { t.keeps = nil })
			st.replace(c)
			res.queue()[at] = c
		}
	}
}

func (k *keeping) hash() (h uint64) {
	if k != nil {
		for i := range k.holds {
			h += k.holds[i].hash()
		}
	}
	return h
}

func (k *keeping) bytes() int {
	if k == nil {
		return 0
	}
	return sizeOf(k.holds)
}

// hasKeeps reports whether entries and snapshots of a level have the holds that callers keep,
// and whether deadlocks are detected.
func hasKeeps(level uint32) bool { return level >= version.Keeps }

func appendKeeps(b []byte, keeps []Kept) []byte {
	b = wire.AppendUint(b, uint64(len(keeps)))
	for i := range keeps {
		b = append(b, byte(keeps[i].Class))
		b = wire.AppendBytes(b, keeps[i].Name)
		b = wire.AppendUint(b, keeps[i].Fence)
	}
	return b
}

func readKeeps(rd *wire.Reader) (keeps []Kept) {
	each(rd, func() {
		keeps = append(keeps, Kept{Class(rd.Byte()), rd.String(), rd.Uint()})
	})
	return keeps
}

// validateKeeps checks the holds that a request names.
func validateKeeps(keeps []Kept) string {
	if len(keeps) > MaxKeeps {
		return "keeps: names too many holds: must name at most 64"
	}
	for _, k := range keeps {
		if k.Class >= classes {
			return "keeps: the class of a hold is unknown: 0 is a lock, 1 an election"
		}
		if problem := ValidateName(k.Name); problem != "" {
			return "keeps: " + problem
		}
	}
	return ""
}

// ordered reports whether there is at least one hold, and none is there twice.
func (k *keeping) ordered() bool {
	for i := 1; i < len(k.holds); i++ {
		if k.holds[i-1].Fence >= k.holds[i].Fence {
			return false
		}
	}
	return len(k.holds) > 0 && len(k.holds) <= MaxKeeps
}

// keeper returns the name of a resource whose waiter keeps something, or "".
func (v *Version) keeper() (name string) {
	v.graph.Scan(func(e edge) bool {
		name = fmt.Sprintf("request %d of %v, which keeps %s while it waits for %s", e.wait.Sequence, e.wait.Session, quoted(e.hold.name), quoted(e.of.name))
		return false
	})
	return name
}
