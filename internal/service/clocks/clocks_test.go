package clocks

import (
	"bytes"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var seeds = flag.Uint64("seeds", 200, "how many worlds to run")

// station is a server of a world, with clocks of its own.
type station struct {
	clocks *Clocks
	boot   int64   // what its boot clock shows at 0
	rate   float64 // how fast that runs
	wall   int64   // how far its wall clock is ahead of that
}

// world has servers whose clocks differ and drift, and a network that is slow in one
// direction or the other, and loses, repeats and reorders messages.
type world struct {
	random   *rand.Rand
	stations []*station
	now      float64 // ns of a clock that is right
	way      []letter
	loss     int // percent
	slowest  [][]float64
}

type letter struct {
	at       float64
	from, to int
	data     []byte
}

func newWorld(seed uint64, n int, drift float64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1))}
	w.loss = []int{0, 0, 5, 30}[w.random.IntN(4)]
	for range n {
		w.stations = append(w.stations, &station{
			clocks: New(1 + w.random.Uint64N(1<<60)), boot: w.random.Int64N(1e15), rate: 1 + drift*(2*w.random.Float64()-1), wall: 1_795_000_000e9 + w.random.Int64N(20e9),
		})
		var row []float64
		for range n {
			row = append(row, []float64{1e5, 1e6, 2e7, 3e8}[w.random.IntN(4)])
		}
		w.slowest = append(w.slowest, row)
	}
	return w
}

// reading returns what the clocks of a server show.
func (w *world) reading(i int) Reading {
	s := w.stations[i]
	boot := s.boot + int64(w.now*s.rate)
	return Reading{boot, boot + s.wall}
}

func (w *world) send(from int, out []Message) {
	for _, m := range out {
		to := int(m.Server) - 1
		for copies := 1 + w.random.IntN(20)/19; copies > 0; copies-- {
			if w.random.IntN(100) >= w.loss {
				w.way = append(w.way, letter{w.now + w.slowest[from][to]*w.random.Float64(), from, to, slices.Clone(m.Data)})
			}
		}
	}
}

// run lets time pass, in steps of 100 ms or until the next message.
func (w *world) run(t *testing.T, until float64, check func()) {
	t.Helper()
	for next := w.now; w.now < until; {
		at := slices.IndexFunc(w.way, func(l letter) bool {
			return l.at <= next && !slices.ContainsFunc(w.way, func(o letter) bool { return o.at < l.at })
		})
		if at < 0 {
			w.now = next
			next += 1e8
			for i := range w.stations {
				var others []uint64
				for o := range w.stations {
					if o != i {
						others = append(others, uint64(o)+1)
					}
				}
				w.send(i, w.stations[i].clocks.Ask(w.reading(i), others))
			}
			check()
			continue
		}
		l := w.way[at]
		w.way = slices.Delete(w.way, at, at+1)
		w.now = max(w.now, l.at)
		out, err := w.stations[l.to].clocks.Receive(w.reading(l.to), uint64(l.from)+1, l.data)
		if err != nil {
			t.Fatal(err)
		}
		w.send(l.to, out)
		check()
	}
}

// restart starts the machine of a server again: its boot clock begins at 0.
func (w *world) restart(i int) {
	s := w.stations[i]
	boot := -int64(w.now * s.rate)
	s.clocks, s.boot, s.wall = New(1+w.random.Uint64N(1<<60)), boot, s.wall+s.boot-boot
}

// TestBounds: the true offset and drift are always within the reported bounds, and the
// bounds become narrow. Clocks differ and drift, messages are delayed, lost, repeated and
// reordered, and servers restart.
func TestBounds(t *testing.T) {
	said, drifts, notable := 0, 0, 0
	for seed := range *seeds {
		drift := []float64{0, 1e-5, 1e-3, 0.04}[seed%4]
		w := newWorld(seed, 2+int(seed%3), drift)
		check := func() {
			for i := range w.stations {
				here := w.reading(i)
				for _, e := range w.stations[i].clocks.Estimates(here) {
					said++
					other := w.stations[e.Server-1]
					there := w.reading(int(e.Server) - 1)
					if wrong := there.Wall - here.Wall - e.Offset; max(wrong, -wrong) > e.Error+2 {
						t.Fatalf("seed %d: server %d is %d ns ahead of server %d, which says %d and %d at most", seed, e.Server, there.Wall-here.Wall, i+1, e.Offset, e.Error)
					}
					if e.Over == 0 {
						continue
					}
					drifts++
					truth := other.rate/w.stations[i].rate - 1
					if math.Abs(truth-e.Drift) > e.DriftError+4/float64(e.Over) {
						t.Fatalf("seed %d: server %d runs faster by %g than server %d, which says %g and %g at most", seed, e.Server, truth, i+1, e.Drift, e.DriftError)
					}
					if e.Notable() {
						if notable++; math.Abs(truth) < Notable {
							t.Fatalf("seed %d: a drift of %g is notable: %+v", seed, truth, e)
						}
					}
				}
			}
		}
		for range 4 { // the machine of a server is started again, and soon again
			w.run(t, w.now+10e9, check)
			w.restart(0)
			w.run(t, w.now+2e8, check)
			w.restart(0)
		}
		w.run(t, 80e9, check)
		if w.loss == 0 && len(w.stations[0].clocks.Estimates(w.reading(0))) != len(w.stations)-1 {
			t.Fatalf("seed %d: not all servers are known", seed)
		}
	}
	t.Logf("%d estimates, %d of drift, %d notable", said, drifts, notable)
	if drifts < said/2 || notable < said/50 {
		t.Error("too few of some kind: they do not test much")
	}
}

// TestNarrow: between servers that are near each other, the error is about the delay of
// the network.
func TestNarrow(t *testing.T) {
	w := newWorld(1, 2, 1e-4)
	w.loss, w.slowest = 0, [][]float64{{0, 2e5}, {2e5, 0}}
	w.stations[1].rate = w.stations[0].rate * 1.02 // a working clock is never so fast
	w.run(t, 70e9, func() {})
	e := w.stations[0].clocks.Estimates(w.reading(0))[0]
	if e.Error > 9e7 || e.DriftError > 1e-5 || e.Over < 50e9 || !e.Notable() || math.Abs(e.Drift-0.02) > 1e-5 {
		t.Errorf("got %+v", e)
	}
	w.stations[0].clocks.peers[0].samples = w.stations[0].clocks.peers[0].samples[kept-1:]
	if e := w.stations[0].clocks.Estimates(w.reading(0))[0]; e.Over != 0 || e.Notable() {
		t.Errorf("after one round it says %+v", e)
	}
	w.now += 61e9
	if all := w.stations[0].clocks.Estimates(w.reading(0)); len(all) > 0 {
		t.Errorf("after a minute without an answer it says %+v", all)
	}
}

// FuzzReceive: every input is refused or accepted, and does not change the data about a
// server that was not asked.
func FuzzReceive(f *testing.F) {
	asks := New(7).Ask(Reading{1, 2}, []uint64{2})
	f.Add(asks[0].Data)
	answer, _ := New(8).Receive(Reading{5, 5}, 1, asks[0].Data)
	f.Add(answer[0].Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := New(9)
		out, err := c.Receive(Reading{100, 200}, 3, data)
		if err != nil && len(out) > 0 || len(out) > 1 {
			t.Fatalf("%x: %d messages, %v", data, len(out), err)
		}
		if all := c.Estimates(Reading{101, 201}); len(all) > 0 {
			t.Fatalf("%x: %+v is known", data, all)
		}
		if len(out) == 1 && bytes.Equal(out[0].Data, data) {
			t.Fatalf("%x is sent back", data)
		}
	})
}
