package registry

import (
	"cmp"
	"slices"
)

// linger closes the place of a hold that has ended and was used, for as long as it asked: from its
// grant, and after a loss also from now.
func (m *naive) linger(claim *naiveClaim, lost bool) {
	m.noteEnd(claim)
	until := claim.since + claim.atLeast
	if lost {
		until = max(until, m.now+claim.delay)
	}
	if until > m.now && claim.atLeast+claim.delay > 0 {
		m.closed = append(m.closed, naiveClosed{claim.key, claim.limit, claim.fence, until})
	}
}

// closedOf returns the places of a resource that are closed, by fence.
func (m *naive) closedOf(k key) (places []naiveClosed) {
	for _, p := range m.closed {
		if p.key == k {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b naiveClosed) int { return cmp.Compare(a.fence, b.fence) })
	return places
}

func (m *naive) closedLimit(k key) uint32 {
	for _, p := range m.closedOf(k) {
		return p.limit
	}
	return 0
}

func (m *naive) firstClosed(k key) *Linger {
	for _, p := range m.closedOf(k) {
		return &Linger{Fence: p.fence}
	}
	return nil
}

// openDue opens the places whose time has come, the earliest first, and then grants.
func (m *naive) openDue() {
	var due, rest []naiveClosed
	for _, p := range m.closed {
		if p.until <= m.now {
			due = append(due, p)
		} else {
			rest = append(rest, p)
		}
	}
	m.closed = rest
	slices.SortFunc(due, func(a, b naiveClosed) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.fence, b.fence))
	})
	var filled []key
	for _, p := range due {
		if !slices.Contains(filled, p.key) {
			filled = append(filled, p.key)
			m.fill(p.key)
		}
	}
}

// reopen opens the places of a resource, or the one with a fence, and returns the newest fence.
func (m *naive) reopen(k key, fence uint64) (newest uint64) {
	for _, p := range m.closedOf(k) {
		if fence == 0 || fence == p.fence {
			newest = p.fence
		}
	}
	m.closed = slices.DeleteFunc(m.closed, func(p naiveClosed) bool { return p.key == k && (fence == 0 || fence == p.fence) })
	if newest != 0 {
		m.fill(k)
	}
	return newest
}
