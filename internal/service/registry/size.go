package registry

// tally has the size of the state and its digest. It is not part of the state, and no command
// depends on it.
type tally struct {
	// bytes is the approximate size of the encoding. Each change updates it.
	bytes int
	// digest is the sum of the digests of sessions and records. fold updates it.
	digest uint64
	// fence is the newest one at the last fold. Claims with later fences are not counted in the
	// digest; all others are.
	fence uint64
}

// Size returns the approximate size of the result of Encode.
func (r *Registry) Size() int {
	size := 64 + 96*len(r.members) + r.tally.bytes
	if r.guarded != nil {
		size += r.guarded.bytes
	}
	if r.rules != nil {
		size += r.rules.Size() + r.trail.size()
	}
	return size
}

// Carried reports whether a request was carried out before, so that carrying it out again
// changes nothing.
func (r *Registry) Carried(id SessionID, sequence uint64) bool {
	s := r.sessions[id]
	return s != nil && s.carried(sequence)
}

func (s *session) carried(sequence uint64) bool {
	_, answered := s.find(sequence)
	return answered || sequence < s.low || s.claims.get(number(sequence)) != nil
}

// ValueSize returns the length of the value of a claim, or 0 if there is none.
func (r *Registry) ValueSize(id SessionID, sequence uint64) int {
	if s := r.sessions[id]; s != nil {
		if c := s.claims.get(number(sequence)); c != nil {
			return len(c.value)
		}
	}
	return 0
}

// bytes returns the approximate size of the encoding of a session, without its answers and
// claims.
func (s *session) bytes() int { return 64 + len(s.owner) + len(s.host) + len(s.program) }

func (a *answer) bytes() int {
	n := 12 + len(a.message)
	if a.fence != 0 {
		n += 14 // and its floor
	}
	return n
}

func (c *claim) bytes() int { return 44 + len(c.value) + len(c.reason) + len(c.by) + c.keeps.bytes() }

func (res *resource) bytes() int { return 8 + len(res.name) }

// bytes returns the approximate size of the encoding of a record, without its endings.
func (rec *record) bytes() int { return 8 + len(rec.name) }

func (e *ending) bytes() int {
	request := e.request()
	return 44 + len(e.of.host) + len(e.of.program) + len(request.reason) + len(e.of.owner) + len(request.by)
}
