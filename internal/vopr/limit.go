package vopr

import "github.com/conclave-io/conclave/service/registry"

const (
	// stateLimit is the largest limit of a server, in bytes. The servers remember how
	// holds ended of 1,024 names at most, which takes a part of it for good.
	stateLimit = 480 << 10
	// floodValue is the size of each value in a flood where there is a limit.
	floodValue = 2 << 10
	// limitSlack is how much larger a state may be than the limit. Releases, cancels, renewals
	// and the ends of holds are always taken, and their answers take room. A cancel that comes
	// before its request has two answers of 48 bytes together.
	limitSlack = 64<<10 + 8*registry.MaxAnswers/2*48
	// limitSettles is when a leader knows the state, and has taken what came before.
	limitSettles = 1000 * ms
)

// limited is what the judge knows of the size of the state under a leader.
type limited struct {
	term  uint64
	since int64
	most  int // how large it may become
}

// bounds requires that the state grows no more, under a leader that has led for a while,
// once it has the size that a server may allow. An earlier leader may have left more.
func (j *judge) bounds(s *server) {
	l, size := &j.limited, s.replica.Registry().Size()
	if !s.replica.Leading() || s.replica.Term() < l.term {
		return
	}
	if l.term != s.replica.Term() {
		*l = limited{term: s.replica.Term(), since: s.w.now}
	}
	if s.w.now-l.since < limitSettles {
		l.most = max(size, stateLimit) + limitSlack
	} else if size > l.most {
		s.w.violate("limit", "the state has %d bytes, under a leader that has let it grow to %d at most", size, l.most)
	}
}
