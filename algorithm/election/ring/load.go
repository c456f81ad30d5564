package ring

import "github.com/conclave-io/conclave/process"

// Unknown is the load of a process that was never told its load: it is worse than any
// other.
const Unknown = 1<<63 - 1

// Load is how busy a process is, as one election sees it: sampled when the process
// first takes part in a round, and constant to the end of that round. If it could
// change in between, two circulations might find different winners.
type Load struct {
	Latest  int64 // as reported last
	Known   bool  // a host has reported it
	Frozen  int64 // the sample
	Sampled uint64
}

// In returns the load that counts in a round.
func (l *Load) In(round uint64) int64 {
	if round > l.Sampled {
		l.Sampled, l.Frozen = round, Unknown
		if l.Known {
			l.Frozen = l.Latest
		}
	}
	return l.Frozen
}

// Report notes how busy the process is now.
func (l *Load) Report(value int64) { l.Latest, l.Known = max(0, value), true }

// Fields names the state.
func (l *Load) Fields(f *process.Fields) {
	f.Int("load", &l.Latest)
	f.Bool("known", &l.Known)
	f.Int("sample", &l.Frozen)
	f.Uint("sampled", &l.Sampled)
}

// Candidate is a process as elections compare them.
type Candidate struct {
	ID   process.ID
	Load int64 // 0 in elections by label
}

// Beats reports whether a is better than b: less load, or equal load and the
// higher label.
func (a Candidate) Beats(b Candidate, c *process.Config) bool {
	if a.Load != b.Load {
		return a.Load < b.Load
	}
	return c.Above(a.ID, b.ID)
}

// Better reports whether p is better than q: it has the higher label or, of two equal
// labels, the higher rank. So of any two processes one is better.
func Better(p, q process.ID, c *process.Config) bool {
	return c.Above(p, q) || p > q && !c.Above(q, p)
}
