package peering

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const second = int64(1e9)

// process returns the introduction of a process that runs with the data of server 2.
func process(nonce uint64, age int64) Hello {
	h := visitHello()
	h.Nonce, h.Age = nonce, uint64(age)
	return h
}

// connected returns a peer with one connection, which its process 7 dialled 100 s after its start.
func connected() *Peer[int] {
	p := new(Peer[int])
	p.Admit(1, &Newcomer[int]{Conn: 1, Hello: process(7, 100*second), From: "10.0.0.2", At: 500 * second}, 0, false)
	return p
}

// A server that was started again waits until the connections of its earlier process have ended,
// whatever arrives on them: a killed process may have left much in the buffers of a slow reader.
func TestARestartedServerIsNeverACopy(t *testing.T) {
	p := connected()
	n := Newcomer[int]{Conn: 2, Hello: process(8, second), At: 600 * second}
	for heard := range uint64(10) {
		if got := p.Admit(1, &n, heard, false); got.Step != Wait {
			t.Fatalf("look %d: %+v", heard, got)
		}
		p.Pinged(Ping{}) // it was sent before
	}
	late := n
	if got := p.Admit(1, &late, 99, true); got.Step != Reject || got.Refusal.Code != Busy {
		t.Fatalf("when its time is over: %+v", got)
	}
	p.Leave(Messages)
	if got := p.Admit(1, &n, 99, false); got.Step != Admitted {
		t.Fatalf("after the end of the old connection: %+v", got)
	}
	if copies, _ := p.Copies(0); copies != 0 {
		t.Errorf("%d copies were refused", copies)
	}
}

// A process that answers after another one with its data has introduced itself is alive.
func TestACopyIsRefused(t *testing.T) {
	for _, c := range []struct {
		what  string
		nonce uint64
		age   int64
		code  Code
		order string
	}{
		{"a copy started now", 8, second, Copied, "later"},
		{"a copy with a smaller nonce", 6, second, Copied, "later"},
		{"one that started before", 8, 300 * second, Superseded, "earlier"},
		{"one that started together, with a larger nonce", 8, 198 * second, Copied, "later"},
		{"one that started together, with a smaller nonce", 6, 198 * second, Superseded, "earlier"},
	} {
		p := connected()
		n := Newcomer[int]{Conn: 2, Hello: process(c.nonce, c.age), From: "10.0.0.9", At: 600 * second}
		p.Admit(1, &n, 5, false)
		asks := p.Ping().Asks
		if asks == 0 {
			t.Fatalf("%s: the peer is not asked", c.what)
		}
		p.Pinged(Ping{Answers: asks - 1})
		if got := p.Admit(1, &n, 6, false); got.Step != Wait {
			t.Fatalf("%s: before the answer: %+v", c.what, got)
		}
		p.Pinged(Ping{Answers: asks})
		got := p.Admit(1, &n, 7, false)
		if got.Step != Reject || got.Refusal.Code != c.code {
			t.Fatalf("%s: %+v", c.what, got)
		}
		want := "two processes run with the data of server 2: one at 127.0.0.1:7502 (from 10.0.0.2) is connected to server 1, the other at 127.0.0.1:7502 (from 10.0.0.9) has started " + c.order + " and is refused; stop the copy"
		if !strings.HasPrefix(got.Refusal.Text, want) {
			t.Errorf("%s: %s, want %s", c.what, got.Refusal.Text, want)
		}
		if copies, last := p.Copies(603 * second); copies != 1 || last != (Copy{Server: 2, Where: "127.0.0.1:7502 (from 10.0.0.9)", Ago: uint64(3 * second)}) {
			t.Errorf("%s: %d copies, last %+v", c.what, copies, last)
		}
		if p.Ping() != (Ping{}) {
			t.Errorf("%s: the peer is still asked: %+v", c.what, p.Ping())
		}
	}
}

// A copy at another address is refused for the same reason. Another directory is another server.
func TestACopyElsewhere(t *testing.T) {
	for uid, want := range map[uint64]Code{22: Copied, 23: Duplicate} {
		p := connected()
		h := process(8, second)
		h.UID, h.PeerAddress = uid, "10.0.0.9:7500"
		n := Newcomer[int]{Conn: 2, Hello: h, At: 600 * second}
		p.Admit(1, &n, 5, false)
		p.Pinged(Ping{Answers: p.Ping().Asks})
		if got := p.Admit(1, &n, 5, false); got.Step != Reject || got.Refusal.Code != want {
			t.Errorf("uid %d: %+v, want %v", uid, got, want)
		}
	}
}

// A release without nonces is restarted, upgraded and taken back without a wait, and answers no
// questions.
func TestReleasesWithoutNonces(t *testing.T) {
	for _, c := range []struct{ old, new uint64 }{{0, 0}, {0, 8}, {7, 0}, {7, 7}} {
		p := new(Peer[int])
		p.Admit(1, &Newcomer[int]{Conn: 1, Hello: process(c.old, 0)}, 0, false)
		n := Newcomer[int]{Conn: 2, Hello: process(c.new, 0)}
		if got := p.Admit(1, &n, 5, false); got.Step != Replace {
			t.Errorf("nonce %d after %d: %+v", c.new, c.old, got)
		}
	}
}

// What an earlier process asked is not sent to a later one, whose questions have the same numbers.
func TestAnswersAreOfTheProcessThatWasAsked(t *testing.T) {
	p := connected()
	p.Pinged(Ping{Asks: 1})
	if got := p.Ping(); got.Answers != 1 {
		t.Fatalf("it answers %+v", got)
	}
	p.Leave(Messages)
	p.Admit(1, &Newcomer[int]{Conn: 2, Hello: process(8, 0)}, 0, false)
	if got := p.Ping(); got != (Ping{}) {
		t.Errorf("a later process is answered %+v", got)
	}
	p.Pinged(Ping{Answers: 1 << 63})
	n := Newcomer[int]{Conn: 3, Hello: process(9, 0)}
	p.Admit(1, &n, 0, false)
	if got := p.Admit(1, &n, 0, false); got.Step != Wait {
		t.Errorf("an answer without a question counts: %+v", got)
	}
}

// Whatever the order: a process is refused as a copy only if another one was alive after its
// introduction, and while one is connected and alive no other is admitted.
func TestProofsOfLife(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var p Peer[int]
		ends := map[uint64]int{} // when a process ended
		inbound := map[Lane]uint64{}
		var waiting []*Newcomer[int]
		pings := map[uint64][]Ping{} // that a process has sent, not received yet
		asked := map[uint64]uint64{}
		next := uint64(1)
		alive := func(nonce uint64, since int) bool { end, over := ends[nonce]; return !over || end > since }
		for step := 1; step < 300; step++ {
			switch rng.IntN(6) {
			case 0: // a process starts; the one before it may still run
				if rng.IntN(3) == 0 {
					ends[next-1] = step
				}
				waiting = append(waiting, &Newcomer[int]{Lane: Lane(rng.IntN(int(Lanes))), Conn: step, Hello: process(next, 0), At: int64(step)})
				next++
			case 1: // a question arrives at a live process, and it answers
				if known, live := p.Known(); live && alive(known.Nonce, step) {
					if ping := p.Ping(); ping.Asks != 0 {
						asked[known.Nonce] = ping.Asks
					}
					pings[known.Nonce] = append(pings[known.Nonce], Ping{Answers: asked[known.Nonce]})
				}
			case 2: // a ping arrives, perhaps long after it was sent
				if known, live := p.Known(); live && len(pings[known.Nonce]) > 0 {
					p.Pinged(pings[known.Nonce][0])
					pings[known.Nonce] = pings[known.Nonce][1:]
				}
			case 3: // a connection ends
				for ln := range Lanes {
					if _, is := inbound[ln]; is && rng.IntN(3) == 0 {
						delete(inbound, ln)
						p.Leave(ln)
					}
				}
			default:
				if len(waiting) == 0 {
					continue
				}
				i := rng.IntN(len(waiting))
				n := waiting[i]
				got := p.Admit(1, n, uint64(step), rng.IntN(20) == 0)
				switch got.Step {
				case Admitted:
					for _, other := range inbound {
						if other != n.Hello.Nonce {
							t.Fatalf("seed %d: processes %d and %d are connected", seed, other, n.Hello.Nonce)
						}
					}
					inbound[n.Lane] = n.Hello.Nonce
				case Reject:
					if known, _ := p.Known(); got.Refusal.SharesData() && !alive(known.Nonce, int(n.At)) {
						t.Fatalf("seed %d: process %d is refused at %d for %d, which ended at %d", seed, n.Hello.Nonce, n.At, known.Nonce, ends[known.Nonce])
					}
				case Replace:
					delete(inbound, n.Lane)
					p.Leave(n.Lane)
					continue
				case Wait:
					continue
				}
				waiting = append(waiting[:i], waiting[i+1:]...)
			}
		}
	}
}

func TestPingsSurvive(t *testing.T) {
	for _, want := range []Ping{{}, {Asks: 1}, {Answers: 1 << 63}, {Asks: 1<<64 - 1, Answers: 1}} {
		if got, err := DecodePing(append(want.Append(nil), want.Append(nil)...)); err != nil || got != want {
			t.Errorf("%+v came back as %+v, %v", want, got, err)
		}
	}
	if b := (Ping{}).Append(nil); len(b) != 0 {
		t.Errorf("a ping that says nothing is % x, which the first release does not send", b)
	}
	if _, err := DecodePing([]byte{0xff}); err == nil {
		t.Error("a cut ping is taken")
	}
}

func FuzzPing(f *testing.F) {
	f.Add(Ping{Asks: 1, Answers: 1 << 63}.Append(nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		p, err := DecodePing(input)
		if err != nil {
			return
		}
		if again, err := DecodePing(p.Append(nil)); err != nil || again != p {
			t.Fatalf("%+v came back as %+v, %v", p, again, err)
		}
	})
}
