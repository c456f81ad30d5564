package node

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestGarbageIsCollectedOnlyIfNoRoomAppears(t *testing.T) {
	const large = 60 << 20
	for _, c := range []struct {
		name    string
		bytes   int
		after   time.Duration // when there is room
		waits   time.Duration
		collect bool
	}{
		{"there is room", large, 0, 0, false},
		{"there is room soon", large, 300 * time.Millisecond, 300 * time.Millisecond, false},
		{"there is no room", large, time.Hour, 2 * time.Second, true},
		{"there is no room, and the state is small", 1 << 20, time.Hour, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, collected := time.Now(), false
				room := func() int64 {
					if time.Since(begun) >= c.after {
						return 2 * large
					}
					return large
				}
				makeRoom(c.bytes, room, func() { collected = true })
				if waited := time.Since(begun); collected != c.collect || waited != c.waits {
					t.Errorf("waited %v, and collected: %v", waited, collected)
				}
			})
		})
	}
}

func TestHeapHasRoom(t *testing.T) {
	if free := room(); free <= 0 || free > 1<<40 {
		t.Errorf("the heap of a small program may grow by %d bytes", free)
	}
}

func TestEncodingTakesAQuarterOfTheTime(t *testing.T) {
	for _, c := range []struct {
		name             string
		pieces           int
		piece, wantInAll time.Duration
	}{
		// It rests after every third piece, and the last piece has no rest.
		{"small pieces", 100, 400 * time.Microsecond, 40*time.Millisecond + 33*3600*time.Microsecond},
		{"large pieces", 100, 4 * time.Millisecond, 400*time.Millisecond + 100*12*time.Millisecond},
		{"pieces that take long", 10, 100 * time.Millisecond, time.Second + 10*20*time.Millisecond},
		{"more than ten seconds", 5000, 4 * time.Millisecond, 20*time.Second + 625*12*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, p := time.Now(), newPace()
				for range c.pieces {
					time.Sleep(c.piece) // work
					p.rest()
				}
				if took := time.Since(begun); took != c.wantInAll {
					t.Errorf("%v of work took %v, want %v", time.Duration(c.pieces)*c.piece, took, c.wantInAll)
				}
			})
		})
	}
}
