package turns

// backlog is the number of waiting requests that take room from which on a principal has a
// backlog. It is so large that some requests still wait while an entry with the others is in
// progress.
const backlog = BatchBytes/(4<<10) + 1

// shares is the judge's record of the waiting requests that take room, by principal, at a leader.
// While two principals have a backlog, each must get about as many requests into the log as the
// other, no matter how many sessions it has.
type shares struct {
	waiting map[string]int
	// lead has, for two principals, how many more requests the first got into the log than the
	// second. It is the maximum over all periods that end now and in which both had a backlog.
	lead map[[2]string]int
}

func newShares() shares {
	return shares{waiting: make(map[string]int), lead: make(map[[2]string]int)}
}

// wait counts a request that starts or stops waiting.
func (x *shares) wait(who string, more int) {
	if x.waiting[who] += more; x.waiting[who] >= backlog {
		return
	}
	if x.waiting[who] == 0 {
		delete(x.waiting, who)
	}
	for pair := range x.lead {
		if pair[0] == who || pair[1] == who {
			delete(x.lead, pair)
		}
	}
}

// serve counts a request that gets into the log. If its principal is too far ahead of another one,
// it returns that other principal, otherwise "".
func (x *shares) serve(who string) (behind string) {
	if x.waiting[who] < backlog {
		return ""
	}
	for other, n := range x.waiting {
		if other == who || n < backlog {
			continue
		}
		x.lead[[2]string{other, who}] = max(0, x.lead[[2]string{other, who}]-1)
		if x.lead[[2]string{who, other}]++; x.lead[[2]string{who, other}] > fairTurns {
			behind = max(behind, other)
		}
	}
	return behind
}
