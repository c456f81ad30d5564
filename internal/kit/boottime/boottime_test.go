package boottime

import (
	"testing"
	"time"
)

func TestClockMovesForward(t *testing.T) {
	first := Now()
	for range 1000 {
		next := Now()
		if next < first {
			t.Fatalf("the clock went back from %d to %d", first, next)
		}
		first = next
	}
}

func TestArithmetic(t *testing.T) {
	at := Time(5).Add(7 * time.Nanosecond)
	if at != 12 || at.Sub(Time(2)) != 10 {
		t.Fatalf("5 + 7 = %d, less 2 = %d", at, at.Sub(Time(2)))
	}
	if Until(Now().Add(time.Hour)) <= 59*time.Minute {
		t.Fatal("an hour from now is less than 59 minutes away")
	}
}
