package nemesis

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
)

// hold is a grant. It lasts from the moment at which the client received it until the client called
// release, or until the deadline of its handle if that is earlier.
type hold struct {
	report
	end int64
}

// verdict is the result of judge.
type verdict struct {
	holds    int
	late     int      // holds that their deadline ended
	unended  int      // holds of programs that were killed while they held a lock
	problems []string // one for each broken promise
}

// judge checks the reports. killed has the programs that were killed, with the last
// moment at which each could have acted, by the clock of the reports.
func judge(reports []report, killed map[int]int64) verdict {
	var v verdict
	holds := v.pair(reports, killed)
	v.holds = len(holds)
	slices.SortFunc(holds, func(a, b hold) int {
		return cmp.Or(cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.At, b.At))
	})
	var last hold // of the holds of the lock so far, the one that ends last
	for i, h := range holds {
		if i == 0 || h.Lock != holds[i-1].Lock {
			last = h
			continue
		}
		if h.At < last.end {
			v.fail("two hold %s: fence %d of %d.%d until %d, fence %d of %d.%d from %d on, %.3f ms earlier", h.Lock,
				last.Fence, last.Program, last.Member, last.end, h.Fence, h.Program, h.Member, h.At, float64(last.end-h.At)/1e6)
		}
		if before := holds[i-1]; h.Fence <= before.Fence {
			v.fail("fences of %s do not grow: %d after %d", h.Lock, h.Fence, before.Fence)
		}
		if h.end > last.end {
			last = h
		}
	}
	return v
}

func (v *verdict) fail(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// pair combines reports into holds, and reports holds that are wrong by themselves. It ignores a hold
// that was over before it began.
func (v *verdict) pair(reports []report, killed map[int]int64) []hold {
	var holds []hold
	open := make(map[workerID]int) // the hold that each worker is in
	for _, r := range reports {
		at := workerID{r.Program, r.Member}
		switch i, in := open[at]; {
		case r.Kind == entered:
			open[at] = len(holds)
			holds = append(holds, hold{r, math.MaxInt64})
		case r.Kind == left && in:
			holds[i].end = min(r.At, r.Deadline)
			if r.Deadline <= r.At {
				v.late++
			}
			delete(open, at)
		}
		if r.Problem != "" {
			v.fail("%d.%d: %s: fence %d: %s", r.Program, r.Member, r.Lock, r.Fence, r.Problem)
		}
		if (r.Kind == left || r.Kind == gone) && r.Lost && r.At < r.Deadline {
			v.fail("%d.%d: %s: fence %d was lost %.3f ms before its deadline", r.Program, r.Member, r.Lock, r.Fence, float64(r.Deadline-r.At)/1e6)
		}
	}
	for at, i := range open {
		if end, died := killed[at.program]; died {
			holds[i].end = min(end, holds[i].Deadline)
			v.unended++
		} else {
			v.fail("%d.%d: %s: fence %d was never left", at.program, at.member, holds[i].Lock, holds[i].Fence)
		}
	}
	return slices.DeleteFunc(holds, func(h hold) bool { return h.end <= h.At })
}

// stayed returns the two reports of one hold.
func stayed(program int, fence uint64, from, to, deadline int64) []report {
	r := report{Program: program, Kind: entered, Lock: "lock", Fence: fence, At: from, Deadline: deadline}
	end := r
	end.Kind, end.At = left, to
	return []report{r, end}
}

func TestJudge(t *testing.T) {
	first := stayed(1, 1, 10, 20, 100)
	for name, c := range map[string]struct {
		reports []report
		killed  map[int]int64
		holds   int
		wrong   int
	}{
		"one after the other":      {slices.Concat(first, stayed(2, 2, 20, 30, 100)), nil, 2, 0},
		"reports out of order":     {slices.Concat(stayed(2, 2, 20, 30, 100), first), nil, 2, 0},
		"two at once":              {slices.Concat(first, stayed(2, 2, 19, 30, 100)), nil, 2, 1},
		"one inside another":       {slices.Concat(stayed(1, 1, 10, 90, 100), stayed(2, 2, 20, 30, 100), stayed(3, 3, 40, 50, 100)), nil, 3, 2},
		"left after the deadline":  {slices.Concat(stayed(1, 1, 10, 90, 15), stayed(2, 2, 20, 30, 100)), nil, 2, 0},
		"entered too late":         {slices.Concat(stayed(1, 9, 20, 90, 15), stayed(2, 2, 20, 30, 100)), nil, 1, 0},
		"fences go back":           {slices.Concat(first, stayed(2, 1, 20, 30, 100)), nil, 2, 1},
		"killed inside":            {slices.Concat(first[:1], stayed(2, 2, 20, 30, 100)), map[int]int64{1: 20}, 2, 0},
		"inside when killed":       {slices.Concat(first[:1], stayed(2, 2, 20, 30, 100)), map[int]int64{1: 21}, 2, 1},
		"past its end when killed": {slices.Concat(stayed(1, 1, 10, 0, 20)[:1], stayed(2, 2, 20, 30, 100)), map[int]int64{1: 25}, 2, 0},
		"never left":               {slices.Clone(first[:1]), nil, 1, 1},
		"refused":                  {[]report{{Kind: failed, Problem: "refused"}}, nil, 0, 1},
		"lost early":               {[]report{{Kind: gone, Lost: true, At: 1, Deadline: 2}}, nil, 0, 1},
		"lost in time":             {[]report{{Kind: gone, Lost: true, At: 2, Deadline: 2}}, nil, 0, 0},
	} {
		v := judge(c.reports, c.killed)
		if v.holds != c.holds || len(v.problems) != c.wrong {
			t.Errorf("%s: %d holds, want %d; problems, want %d: %q", name, v.holds, c.holds, c.wrong, v.problems)
		}
	}
}

func TestResourceRefusesOlderFences(t *testing.T) {
	o := &observer{lines: bufio.NewWriter(io.Discard), fences: make(map[string]uint64), entries: make(map[workerID]int)}
	for i, c := range []struct {
		lock    string
		fence   uint64
		refused bool
	}{{"a", 5, false}, {"a", 5, false}, {"b", 1, false}, {"a", 6, false}, {"a", 5, true}, {"b", 1, false}} {
		if got := o.note(report{Kind: wrote, Lock: c.lock, Fence: c.fence}); got.Refused != c.refused {
			t.Errorf("write %d, with fence %d to %s: refused is %v", i, c.fence, c.lock, got.Refused)
		}
	}
	if o.writes != 6 || o.refused != 1 {
		t.Errorf("%d writes, %d refused", o.writes, o.refused)
	}
}
