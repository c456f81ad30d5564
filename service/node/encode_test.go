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
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		p := pace{begun: begun}
		for range 100 {
			time.Sleep(400 * time.Microsecond) // work
			p.rest()
		}
		// It rests after every third piece, and the last piece has no rest.
		if took := time.Since(begun); took != 40*time.Millisecond+33*3600*time.Microsecond {
			t.Errorf("work of 40 ms took %v", took)
		}
	})
}
