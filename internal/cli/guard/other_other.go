//go:build !linux

package guard

import "errors"

// Other is a process of this machine that need not be a child of this one.
type Other struct {
	// Started is when it was started, in clock ticks since the boot.
	Started uint64
	// Owner is the user that it runs as.
	Owner uint32
}

// Find fails: only Linux has handles of such processes that survive a reuse of their numbers.
func Find(int) (*Other, error) { return nil, errors.ErrUnsupported }

// Ended returns a channel that is closed when the process has ended.
func (*Other) Ended() <-chan struct{} { return nil }

// Close does nothing.
func (*Other) Close() {}

// Terminate fails, as Find does.
func (*Other) Terminate() error { return errors.ErrUnsupported }
