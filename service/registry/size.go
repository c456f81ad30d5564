package registry

// Size returns about how many bytes Encode would return. It costs nothing: each
// change keeps it up to date. It is not part of the state; no command depends on it.
func (r *Registry) Size() int { return 64 + 96*len(r.members) + r.bytes + r.past.bytes }

// Carried reports whether a request was carried out before, so that carrying it out
// again changes nothing.
func (r *Registry) Carried(id SessionID, sequence uint64) bool {
	s := r.sessions[id]
	if s == nil {
		return false
	}
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

// grow counts what an open session takes more, or less.
func (s *session) grow(bytes int) {
	if !s.ended {
		*s.bytes += bytes
	}
}

// size is that of a session with its answers and without its claims.
func (s *session) size() int {
	n := 64 + len(s.owner) + len(s.host) + len(s.program)
	for i := range s.answers {
		n += s.answers[i].size()
	}
	return n
}

func (a *answer) size() int {
	res := &a.result
	n := 12 + len(res.Message)
	if res.Fence != 0 {
		n += 14 // and its floor
	}
	if h := res.Holder; h != nil {
		n += 56 + len(h.Owner) + len(h.Host) + len(h.Program) + len(h.Value) + len(h.Reason)
	}
	return n
}

func (c *claim) size() int {
	return 44 + len(c.value) + len(c.reason) + len(c.by)
}

func (res *resource) size() int { return 8 + len(res.name) }

func (e *Ended) size() int {
	return 44 + len(e.Host) + len(e.Program) + len(e.Reason) + len(e.Owner) + len(e.By)
}

func (rec *record) size() int {
	n := 8 + len(rec.key.name)
	for i := range rec.ended {
		n += rec.ended[i].size()
	}
	return n
}
