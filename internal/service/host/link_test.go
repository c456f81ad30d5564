package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestLink: over lanes that break, each frame is accepted once and in order, and
// acknowledged frames are not kept.
func TestLink(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		a, b := &link{server: 2}, &link{server: 1}
		var queue []batch // from a to b
		var back []uint64 // acknowledgements
		added, taken := 0, 0
		deliver := func() {
			err := each(&queue[0], &b.got, func(f []byte) error {
				if string(f) != fmt.Sprint(taken) {
					t.Fatalf("seed %d: frame %s is taken, want %d", seed, f, taken)
				}
				taken++
				return nil
			})
			if queue = queue[1:]; err != nil {
				t.Fatal(err)
			}
			back = append(back, b.got)
		}
		step := func(k int) {
			switch {
			case k < 40:
				a.add([]byte(fmt.Sprint(added)))
				added++
			case k < 60:
				if out, any := a.next(1); any {
					out.frames = append([]byte(nil), out.frames...)
					queue = append(queue, out)
				}
			case k < 80:
				if len(queue) > 0 {
					deliver()
				}
			case k < 95:
				if len(back) > 0 {
					if !a.acknowledge(back[0]) {
						t.Fatalf("seed %d: %d is more than was sent", seed, back[0])
					}
					back = back[1:]
				}
			case k < 97:
				a.connected(false)
				queue = queue[:random.IntN(len(queue)+1)]
			default:
				a.connected(true)
			}
		}
		for range 500 {
			step(random.IntN(100))
		}
		a.connected(true)
		for taken < added || len(back) > 0 {
			step(40)
			step(60)
			step(80)
		}
		if frames, bytes := a.waiting(); frames != 0 || bytes != 0 {
			t.Fatalf("seed %d: %d frames of %d bytes wait although all were acknowledged", seed, frames, bytes)
		}
		if a.acknowledge(uint64(added) + 1) {
			t.Fatalf("seed %d: an acknowledgement of what was not sent is taken", seed)
		}
	}
}

// TestWindow: no more goes out than the window, and no more is kept.
func TestWindow(t *testing.T) {
	a, b := &link{up: true}, &link{}
	for range window + 10 {
		a.add([]byte{frameResumed})
	}
	if !a.crowded() {
		t.Error("a link with more than its window is not crowded")
	}
	sent := 0
	for out, any := a.next(2); any; out, any = a.next(2) {
		if len(out.frames) > maxBatch {
			t.Fatalf("a batch has %d bytes, want at most %d", len(out.frames), maxBatch)
		}
		if err := b.keep(&out); err != nil {
			t.Fatal(err)
		}
		sent += len(out.frames) / 2
	}
	if sent != window || b.kept.count != window {
		t.Errorf("%d frames went out and %d were kept, want %d", sent, b.kept.count, window)
	}
	more := batch{epoch: 2, first: window + 1, frames: []byte{1, frameResumed}}
	if err := b.keep(&more); !errors.Is(err, errDropped) || b.kept.count != window {
		t.Errorf("a frame beyond the window: %v, %d are kept", err, b.kept.count)
	}
	newer := batch{epoch: 3, first: 1, frames: []byte{1, frameResumed}}
	if err := b.keep(&newer); err != nil || b.kept.count != 1 || b.kept.epoch != 3 {
		t.Errorf("a frame of a newer epoch: %v, %d are kept of %d", err, b.kept.count, b.kept.epoch)
	}
	if err := b.keep(&more); err != nil || b.kept.epoch != 3 {
		t.Errorf("a frame of an epoch that is over: %v, kept of %d", err, b.kept.epoch)
	}
	a.acknowledge(window / 2)
	if out, any := a.next(2); !any || out.first != window+1 {
		t.Errorf("after an acknowledgement frame %d goes out, %v", out.first, any)
	}
	if a.acknowledge(window + 10); a.crowded() {
		t.Error("a link of which all was acknowledged is crowded")
	}
}
