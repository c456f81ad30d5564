package dijkstra

// Machines are the paper's: each reads the variables of its neighbours. They are data
// for a search of all states (package lab/check), not for a host: processes on a host
// share no memory.
type Machines struct {
	Name string
	N    int
	// States is the number of states of a machine. They are numbered from 0.
	States func(i int) int
	// Moves returns the states that machine i may go to, one for each privilege.
	Moves func(v []int, i int) []int
}

// Ring is n machines in a ring with k states each. Machine 0 is the bottom. The
// machines of Spec use the same two functions.
func Ring(n, k int) Machines {
	return Machines{
		Name: "K-state", N: n, States: func(int) int { return k },
		Moves: func(v []int, i int) []int {
			bottom, left, s := i == 0, int64(v[(i+n-1)%n]), int64(v[i])
			if !privileged(bottom, left, s) {
				return nil
			}
			return []int{int(moved(bottom, left, s, int64(k)))}
		},
	}
}

// FourStates is n machines in a line with two bits each, x and up, encoded as 2x + up.
// The bottom is always up and the top never is, so both have two states.
func FourStates(n int) Machines {
	x := func(v []int, i int) int { return v[i] >> 1 }
	up := func(v []int, i int) bool { return i == 0 || i != n-1 && v[i]&1 == 1 }
	return Machines{
		Name: "four-state", N: n,
		States: func(i int) int {
			if i == 0 || i == n-1 {
				return 2
			}
			return 4
		},
		Moves: func(v []int, i int) []int {
			v = wide(v, n)
			switch s := x(v, i); {
			case i == 0 && s == x(v, 1) && !up(v, 1):
				return []int{1 - s}
			case i == 0:
				return nil
			case i == n-1 && s != x(v, i-1):
				return []int{1 - s}
			case i == n-1:
				return nil
			default:
				return middle(s, s != x(v, i-1), s == x(v, i+1) && up(v, i) && !up(v, i+1))
			}
		},
	}
}

// middle is what a machine between bottom and top may do: copy from below, and go down.
func middle(s int, rises, falls bool) (moves []int) {
	if rises {
		moves = append(moves, 2*(1-s)+1)
	}
	if falls {
		moves = append(moves, 2*s)
	}
	return moves
}

// wide writes x of the bottom and the top, which have no other bit, in the encoding of
// the other machines.
func wide(v []int, n int) []int {
	w := append([]int(nil), v...)
	w[0], w[n-1] = 2*v[0], 2*v[n-1]
	return w
}

// ThreeStates is n machines with three states each. They form a line, and the top also
// reads the bottom.
func ThreeStates(n int) Machines {
	return Machines{
		Name: "three-state", N: n, States: func(int) int { return 3 },
		Moves: func(v []int, i int) (moves []int) {
			s, left, right := v[i], v[(i+n-1)%n], v[(i+1)%n]
			switch {
			case i == 0:
				if (s+1)%3 == right {
					moves = append(moves, (s+2)%3)
				}
			case i == n-1:
				if left == right && (left+1)%3 != s {
					moves = append(moves, (left+1)%3)
				}
			default:
				for _, neighbor := range []int{left, right} {
					if (s+1)%3 == neighbor {
						moves = append(moves, neighbor)
					}
				}
			}
			return moves
		},
	}
}
