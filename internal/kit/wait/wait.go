// Package wait waits for time to pass, but not longer than a context lasts.
package wait

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends; then it returns the cause. With 0 it returns at once.
func For(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ticks yields after each interval, until ctx ends.
func Ticks(ctx context.Context, every time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if !yield() {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
