package server

import (
	"testing"
	"time"
)

func TestNumbersGrowWhateverTheClockDoes(t *testing.T) {
	var n numbers
	first := n.next()
	if now := uint64(time.Now().UnixMicro()); first > now || first+uint64(time.Minute/time.Microsecond) < now {
		t.Errorf("the first number is %d at %d", first, now)
	}
	for last := first; last < first+1000; {
		next := n.next()
		if next <= last {
			t.Fatalf("%d follows %d", next, last)
		}
		last = next
	}
	n.skip(time.Hour)
	if next := n.next(); next < first+uint64(time.Hour/time.Microsecond) {
		t.Errorf("an hour later comes %d, after %d", next, first)
	}
	if lowFor(5) != 1 || lowFor(first) >= first {
		t.Errorf("the low marks are %d and %d", lowFor(5), lowFor(first))
	}
}
