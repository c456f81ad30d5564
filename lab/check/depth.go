package check

// depthFirst searches the states that were found last first. It keeps fewer states
// waiting than breadthFirst, but the violations that it finds are rarely shortest.
func (s *search) depthFirst() {
	w := s.workers[0]
	stack := &output{search: s}
	for _, chunk := range s.roots() {
		for at := 0; at < len(chunk); at += s.width {
			v, f := s.record(chunk[at:])
			stack.put(v, f)
			stack.depths = append(stack.depths, 0)
		}
	}
	state := make([]uint32, s.width)
	for len(stack.depths) > 0 && s.broken == nil && s.stopped.Load() == nil {
		depth := stack.pop(state)
		s.depth = max(s.depth, depth)
		if s.cfg.MaxDepth > 0 && depth >= s.cfg.MaxDepth {
			s.stop("depth")
			return
		}
		before := stack.size
		s.transitions.Add(s.visit(w, state, stack))
		s.states.Add(uint64(stack.size - before))
		for range stack.size - before {
			stack.depths = append(stack.depths, int32(depth+1))
		}
		s.tell()
		s.checkLimits()
	}
}

// pop removes the last state and returns its depth.
func (o *output) pop(into []uint32) int {
	last := len(o.chunks) - 1
	c := o.chunks[last]
	copy(into, c[len(c)-o.width:])
	o.chunks[last] = c[:len(c)-o.width]
	if len(o.chunks[last]) == 0 {
		o.recycle(o.chunks[last])
		o.chunks = o.chunks[:last]
	}
	o.size--
	depth := o.depths[len(o.depths)-1]
	o.depths = o.depths[:len(o.depths)-1]
	return int(depth)
}
