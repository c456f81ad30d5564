package check

import "slices"

// tarjan finds strongly connected parts, without recursion: the runs may be long.
type tarjan struct {
	*graph
	next  int32
	stack []int32
	parts [][]int32
	last  int32 // the number of the last part; none is used twice
}

// open is the part of a state whose part is still to be found.
const open = -1

type frame struct{ at, arc int32 }

// split returns the strongly connected parts of some states, each in the order of its
// numbers, which rise with the depth; the first one begins first.
func (t *tarjan) split(states []int32) [][]int32 {
	t.next, t.parts = 0, nil
	for _, i := range states {
		t.nodes[i].part = open
	}
	for _, i := range states {
		if t.nodes[i].part == open {
			t.visit(i)
		}
	}
	slices.SortFunc(t.parts, func(a, b []int32) int { return int(a[0] - b[0]) })
	return t.parts
}

func (t *tarjan) visit(root int32) {
	frames := []frame{t.enter(root)}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		n := &t.nodes[f.at]
		if f.arc < n.after {
			to := t.arcs[f.arc].to
			f.arc++
			switch m := &t.nodes[to]; {
			case m.part != open:
			case m.index == 0:
				frames = append(frames, t.enter(to))
			default:
				n.low = min(n.low, m.index)
			}
			continue
		}
		at := f.at
		if frames = frames[:len(frames)-1]; len(frames) > 0 {
			below := &t.nodes[frames[len(frames)-1].at]
			below.low = min(below.low, n.low)
		}
		if n.low == n.index {
			t.close(at)
		}
	}
}

func (t *tarjan) enter(i int32) frame {
	t.next++
	n := &t.nodes[i]
	n.index, n.low = t.next, t.next
	t.stack = append(t.stack, i)
	return frame{i, n.first}
}

// close takes a part off the stack.
func (t *tarjan) close(root int32) {
	var part []int32
	t.last++
	for {
		i := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.nodes[i].index, t.nodes[i].part = 0, t.last
		part = append(part, i)
		if i == root {
			break
		}
	}
	slices.Sort(part)
	t.parts = append(t.parts, part)
}
