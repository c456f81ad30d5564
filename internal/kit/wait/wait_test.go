package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/internal/kit/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, why := time.Now(), errors.New("enough")
		if err := wait.For(t.Context(), time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("waited %v: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := wait.For(ctx, time.Minute); !errors.Is(err, why) {
			t.Errorf("a wait whose context has ended: %v", err)
		}
		if err := wait.For(ctx, 0); err != nil {
			t.Errorf("a wait for no time: %v", err)
		}
	})
}

func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun, ticks := time.Now(), 0
		for range wait.Ticks(ctx, 3*time.Second) {
			ticks++
			if took := time.Since(begun); took != time.Duration(ticks)*3*time.Second {
				t.Errorf("tick %d comes after %v", ticks, took)
			}
		}
		if ticks != 3 {
			t.Errorf("%d ticks in 10 s", ticks)
		}
		for range wait.Ticks(t.Context(), time.Second) {
			break
		}
	})
}
