package founding

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

func (w *world) clone() *world {
	c := *w
	c.servers = slices.Clone(w.servers)
	for i := range c.servers {
		c.servers[i].m.heard = maps.Clone(c.servers[i].m.heard)
	}
	return &c
}

// key tells states apart.
func (w *world) key() string {
	b := []byte{byte(w.drawn), byte(w.emptied), byte(w.crashed)}
	add := func(phase Phase, uid uint64, r Record) {
		b = append(b, byte(phase), byte(uid), byte(len(r)))
		for _, f := range r {
			b = append(b, byte(f.UID))
		}
	}
	flag := func(set bool) Phase {
		if set {
			return 1
		}
		return 0
	}
	for i := range w.servers {
		h := &w.servers[i]
		add(flag(h.disk.State)|flag(h.blank)<<1|flag(h.lost)<<2|flag(h.voted)<<3, h.disk.UID, h.disk.Record)
		for j := range w.servers {
			a := h.m.heard[uint64(j)+1]
			add(a.Phase, a.UID, a.Record)
		}
	}
	return string(b)
}

// TestEveryCrash tries every order in which three servers hear each other, write, found,
// crash and lose one disk. No server may vote twice, and no second cluster may be
// founded. In the end, two servers vote, and the third votes or waits to be readmitted.
// With LONG set any server may lose its disk, else the one that proposes the record, and
// a server may crash as well.
func TestEveryCrash(t *testing.T) {
	const empties = 1 // an emptied server crashes too
	crashes, victims := 0, 1
	if os.Getenv("LONG") != "" {
		crashes, victims = 1, 3
	}
	seen := make(map[string]bool)
	var search func(w *world, trail []string)
	search = func(w *world, trail []string) {
		if k := w.key(); seen[k] {
			return
		} else {
			seen[k] = true
		}
		if founded, blank := w.clone().settle(t); founded < 2 || founded+blank < 3 {
			t.Fatalf("%v: then %d servers found and %d rejoin", trail, founded, blank)
		}
		try := func(what string, f func(w *world) string) {
			next := w.clone()
			now := append(slices.Clone(trail), what)
			if broken := f(next); broken != "" {
				t.Fatalf("%v: %s", now, broken)
			}
			search(next, now)
		}
		for i := range w.servers {
			try(fmt.Sprint(i+1, " steps"), func(w *world) string { return w.step(i) })
			if w.crashed < crashes+empties {
				try(fmt.Sprint(i+1, " crashes"), func(w *world) string { w.crash(i); return "" })
			}
			if w.emptied < empties && i < victims {
				try(fmt.Sprint(i+1, " is emptied"), func(w *world) string { w.empty(i); return "" })
			}
			for j := range w.servers {
				if i != j {
					try(fmt.Sprint(i+1, " hears ", j+1), func(w *world) string { w.deliver(j, i, w.says(j)); return "" })
				}
			}
		}
	}
	search(newWorld(3), nil)
	t.Logf("%d states", len(seen))
}

// letter is a hello on its way, as old as chance will have it.
type letter struct {
	from, to int
	life     int // of the receiver: what was sent to an earlier process is void
	a        Answer
}

// TestAnyCrash adds late messages, more servers and more disks. If fewer than half of the
// disks are lost, a majority founds, except in rare cases in which the operator is told
// to begin again. No server votes twice, however many disks are lost.
func TestAnyCrash(t *testing.T) {
	rounds := 2000
	if os.Getenv("LONG") != "" {
		rounds = 200_000
	}
	cutShort := 0
	for seed := range uint64(rounds) {
		broken, told := playCrashes(t, rand.New(rand.NewPCG(seed, 1)))
		if broken != "" {
			t.Fatalf("seed %d: %s", seed, broken)
		}
		if told {
			cutShort++
		}
	}
	t.Logf("%d of %d foundings have to be begun again", cutShort, rounds)
	if cutShort > rounds/1000 {
		t.Errorf("%d of %d foundings have to be begun again", cutShort, rounds)
	}
}

func playCrashes(t *testing.T, rnd *rand.Rand) (broken string, told bool) {
	n := 2 + rnd.IntN(4)
	w := newWorld(n)
	lives := make([]int, n)
	var post []letter
	victims := rnd.Perm(n)[:rnd.IntN(n)] // one server keeps its disk
	for range 40 + rnd.IntN(80) {
		i := rnd.IntN(n)
		switch rnd.IntN(40) {
		case 0:
			w.crash(i)
			lives[i]++
			if j := rnd.IntN(n); i != j {
				w.servers[j].m.Lose(uint64(i) + 1)
			}
		case 1:
			if slices.Contains(victims, i) {
				w.empty(i)
				lives[i]++
			}
		default:
			if j := rnd.IntN(n); i != j {
				post = append(post, letter{i, j, lives[j], w.says(i)})
			}
		}
		if len(post) > 0 {
			at := rnd.IntN(len(post))
			if l := post[at]; l.life == lives[l.to] {
				w.deliver(l.from, l.to, l.a)
			}
			post = slices.Delete(post, at, at+1)
		}
		if broken := w.step(rnd.IntN(n)); broken != "" {
			return broken, false
		}
	}
	founded, blank := w.settle(t)
	switch {
	case 2*w.lost() >= n || 2*founded > n && founded+blank == n:
		return "", false
	case w.told():
		return "", true
	}
	return fmt.Sprintf("of %d servers %d lost their data, %d founded and %d rejoin", n, w.lost(), founded, blank), false
}

// lost counts the servers whose disk was emptied.
func (w *world) lost() (n int) {
	for _, h := range w.servers {
		if h.lost {
			n++
		}
	}
	return n
}
