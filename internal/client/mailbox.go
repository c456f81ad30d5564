package client

import (
	"sync"
	"sync/atomic"

	"github.com/conclave-io/conclave/internal/client/line"
)

// maxInline is the largest number of waiting calls for which the goroutine that posts an input
// takes the turn itself: to wake another goroutine takes longer than the turn. With more calls, one
// frame should carry many of them.
const maxInline = 4

// mailbox queues inputs from any goroutine. One goroutine at a time owns the driver.
type mailbox struct {
	wake  chan struct{} // a value in it gives the driver to the driver's own goroutine
	calls atomic.Int32  // the number of waiting calls

	mu     sync.Mutex
	inputs []line.Input
	taken  bool // a goroutine owns the driver
	closed bool
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// put reports whether the input will be processed, and whether the caller now owns the driver.
func (m *mailbox) put(in line.Input) (ok, drives bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false, false
	}
	m.inputs = append(m.inputs, in)
	if m.taken {
		return true, false
	}
	m.taken = true
	if m.calls.Load() > maxInline {
		m.wake <- struct{}{}
		return true, false
	}
	return true, true
}

// take returns all inputs, and keeps the memory of empty for later ones. If there are none, it
// frees the driver.
func (m *mailbox) take(empty []line.Input) []line.Input {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.inputs) == 0 || m.closed {
		m.free()
		return nil
	}
	inputs := m.inputs
	m.inputs = empty[:0]
	return inputs
}

// pass frees the driver. If there are more inputs, it gives the driver to its own goroutine.
func (m *mailbox) pass() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.inputs) > 0 && !m.closed {
		m.wake <- struct{}{}
		return
	}
	m.free()
}

// free lets the next goroutine that posts an input own the driver. After close, it gives the
// driver to close.
func (m *mailbox) free() {
	if m.taken = false; m.closed {
		m.wake <- struct{}{}
	}
}

// close refuses further inputs, waits until no other goroutine owns the driver, and returns the
// inputs that were not processed.
func (m *mailbox) close() []line.Input {
	m.mu.Lock()
	m.closed = true
	taken := m.taken
	m.mu.Unlock()
	if taken {
		<-m.wake
	}
	return m.inputs
}
