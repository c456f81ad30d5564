package property

import (
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// The judges of mutual exclusion. Each is called when p has entered, with what the
// host has observed before that.

// AtMost judges that at most k are inside. With k = 1 this is mutual exclusion.
func AtMost(s Scene, k int, p process.ID) *Violation {
	inside := 0
	for q := range all(s) {
		if s.Inside(q) {
			inside++
		}
	}
	if inside <= k {
		return nil
	}
	others := list(s, func(q process.ID) bool { return q != p && s.Inside(q) })
	if k > 1 {
		return broken(process.AtMostK, p, "%s entered while %s were inside: at most %d may be", s.Config().Text(p), others, k)
	}
	was := "was"
	if inside > 2 {
		was = "were"
	}
	return broken(process.MutualExclusion, p, "%s entered while %s %s inside", s.Config().Text(p), others, was)
}

// FencesGrow judges a fence against the highest one before.
func FencesGrow(s Scene, p process.ID, fence, highest process.Fence) *Violation {
	if fence > highest {
		return nil
	}
	return broken(process.FencesGrow, p, "%s entered with fence %s: an earlier entry had fence %s", s.Config().Text(p), fence, highest)
}

// FencesGrowCausally judges a fence against the highest one that happened before, and
// by whether it was granted before.
func FencesGrowCausally(s Scene, p process.ID, fence, past process.Fence, again bool) *Violation {
	switch {
	case again:
		return broken(process.FencesGrowCausally, p, "%s entered with fence %s: another entry had the same fence", s.Config().Text(p), fence)
	case fence <= past:
		return broken(process.FencesGrowCausally, p, "%s entered with fence %s: an entry that happened before had fence %s", s.Config().Text(p), fence, past)
	}
	return nil
}

// HappenedBefore judges that nobody waits whose request happened before that of p.
func HappenedBefore(s Scene, p process.ID, before func(q process.ID) bool) *Violation {
	for q := range all(s) {
		if q != p && s.Waiting(q) && before(q) {
			return broken(process.OrderHappenedBefore, p, "%s entered before %s, whose request happened before its own", s.Config().Text(p), s.Config().Text(q))
		}
	}
	return nil
}

// Arrival judges that nobody waits whose request reached the coordinator before that
// of p. The function order returns the position of the request of a process among those that arrived,
// or 0.
func Arrival(s Scene, p process.ID, order func(q process.ID) uint64) *Violation {
	own := order(p)
	for q := range all(s) {
		if at := order(q); q != p && 0 < at && at < own && s.Waiting(q) {
			return broken(process.OrderArrival, p, "%s entered before %s, whose request arrived earlier", s.Config().Text(p), s.Config().Text(q))
		}
	}
	return nil
}

// Timestamps judges the time stamp of a request against that of the last entry.
func Timestamps(s Scene, own, last process.Stamp) *Violation {
	if !own.Less(last) {
		return nil
	}
	return broken(process.OrderTimestamp, own.ID, "%s entered after %s, whose request has a later time stamp", s.Config().Text(own.ID), s.Config().Text(last.ID))
}

// Bypass judges how often others have entered while somebody waits. Overtaken counts
// the entry of p for a process that waits, and returns how many it has counted.
func Bypass(s Scene, p process.ID, bound int, overtaken func(q process.ID) int) *Violation {
	for q := range all(s) {
		if q == p || !s.Waiting(q) {
			continue
		}
		if times := overtaken(q); times > bound {
			return broken(process.BoundedBypass, q, "others entered %s while %s waited: the bound is %d", often(times), s.Config().Text(q), bound)
		}
	}
	return nil
}

func often(times int) string {
	if times == 1 {
		return "once"
	}
	return strconv.Itoa(times) + " times"
}

// Progress judges a state in which no event is enabled or, if stalled is not 0, nobody
// has entered for so long.
func Progress(s Scene, stalled process.Duration) *Violation {
	waiting := list(s, s.Waiting)
	if waiting == "" {
		return nil
	}
	wait := "waits"
	if strings.Contains(waiting, ", ") {
		wait = "wait"
	}
	if stalled > 0 {
		return broken(process.Progress, process.None, "%s %s, and nobody has entered for %d ns", waiting, wait, stalled)
	}
	return broken(process.Progress, process.None, "%s %s forever: no event is enabled", waiting, wait)
}
