package queue

import (
	"math/rand/v2"
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry"
)

func commands(from, n int) []registry.Command {
	c := make([]registry.Command, n)
	for i := range c {
		c[i].Sequence = uint64(from + i)
	}
	return c
}

// Items are taken once and in order, within the bounds, whatever happens in between. No
// member waits for more than one turn of each other member.
func TestEveryoneHasTheirTurn(t *testing.T) {
	const conns = 4
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var q Turns[int]
		var lines [conns]Line[int]
		var put, taken, others [conns]int
		for i := range lines {
			lines[i].Conn = i
		}
		for step := range 600 {
			i := rng.IntN(conns)
			if n := 1 + rng.IntN(200); step < 400 && rng.IntN(3) > 0 {
				waits := put[i] - taken[i]
				if room := lines[i].Room(); q.Put(&lines[i], commands(put[i], n)) != room || room != (waits < Turn) {
					t.Fatalf("seed %d: %d requests wait, room %t", seed, waits, room)
				} else if room {
					if waits == 0 {
						others[i] = 0
					}
					put[i] += n
				}
				continue
			}
			l, got := q.Take()
			if l == nil {
				break
			}
			who := l.Conn
			for _, c := range got {
				if c.Sequence != uint64(taken[who]) {
					t.Fatalf("seed %d: request %d of connection %d comes where %d was due", seed, c.Sequence, who, taken[who])
				}
				taken[who]++
			}
			others[who] = 0
			for other := range others {
				if put[other] > taken[other] && other != who {
					if others[other] += len(got); others[other] > (conns-1)*Turn {
						t.Fatalf("seed %d: connection %d waits while %d requests of others are taken", seed, other, others[other])
					}
				}
			}
		}
		for l, _ := q.Take(); l != nil; l, _ = q.Take() {
		}
		for i := range lines {
			if !lines[i].Room() || !q.Empty() {
				t.Fatalf("seed %d: something is left of connection %d", seed, i)
			}
		}
	}
}
