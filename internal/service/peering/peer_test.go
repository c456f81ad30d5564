package peering

import (
	"math/rand/v2"
	"testing"
)

// as returns the introduction of a directory of server 2.
func as(uid uint64) Hello {
	h := visitHello()
	h.UID = uid
	return h
}

// Links open and close in any order. Two directories with one id are never connected at
// the same time. A lane has one link, which is that of the known directory.
func TestOneDirectoryAtATime(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var p Peer[int]
		dialled := map[int]uint64{} // links, and the UID on each
		inbound := map[Lane][2]uint64{}
		for link := 1; link < 200; link++ {
			uid := 1 + rng.Uint64N(2)
			switch lane := Lane(rng.IntN(int(Lanes))); rng.IntN(4) {
			case 0:
				if p.Join(lane, as(uid), 0) {
					dialled[link] = uid
				}
			case 1:
				n := Newcomer[int]{Lane: lane, Conn: link, Hello: as(uid)}
				switch seat, taken := inbound[lane]; p.Admit(1, &n, 0, false).Step {
				case Wait:
					if known, live := p.Known(); !live || known.UID == uid {
						t.Fatalf("seed %d: %d is contested by %d, live %t", seed, uid, known.UID, live)
					}
				case Replace:
					if old := p.Inbound(lane); !taken || uint64(old) != seat[0] {
						t.Fatalf("seed %d: link %d is in the way, not %d", seed, seat[0], old)
					}
				case Admitted:
					if taken {
						t.Fatalf("seed %d: link %d is in the way of nobody", seed, seat[0])
					}
					inbound[lane] = [2]uint64{uint64(link), uid}
				}
			case 2:
				for l := range dialled {
					delete(dialled, l)
					p.Part()
					break
				}
			case 3:
				if _, taken := inbound[lane]; taken {
					delete(inbound, lane)
					p.Leave(lane)
				}
			}
			known, live := p.Known()
			if live != (len(dialled)+len(inbound) > 0) {
				t.Fatalf("seed %d: live %t with %d and %d links", seed, live, len(dialled), len(inbound))
			}
			for _, uid := range dialled {
				if uid != known.UID {
					t.Fatalf("seed %d: %d and %d are connected", seed, uid, known.UID)
				}
			}
			for _, seat := range inbound {
				if seat[1] != known.UID {
					t.Fatalf("seed %d: %d and %d are connected", seed, seat[1], known.UID)
				}
			}
		}
	}
}

func TestAServerIntroducesItselfAgainAsItself(t *testing.T) {
	var p Peer[int]
	p.Admit(1, &Newcomer[int]{Conn: 1, Hello: as(22)}, 0, false)
	changed := as(22)
	changed.ClientAddress, changed.Level = "elsewhere:7400", 3
	if err := p.Again(2, changed); err != nil {
		t.Error(err)
	}
	if known, _ := p.Known(); known.ClientAddress != "elsewhere:7400" {
		t.Errorf("it is known as %+v", known)
	}
	for what, change := range map[string]func(*Hello){
		"another cluster":   func(h *Hello) { h.Cluster++ },
		"another server":    func(h *Hello) { h.Server++ },
		"another directory": func(h *Hello) { h.UID++ },
		"another address":   func(h *Hello) { h.PeerAddress = "other:7500" },
	} {
		h := changed
		change(&h)
		if err := p.Again(2, h); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// A server that has not read its state knows neither the members nor the level, so it
// refuses nobody for good. It refuses for good what it does know to be wrong.
func TestAServerThatStartsRefusesNobodyForGood(t *testing.T) {
	self := Hello{Cluster: 0xc0ffee, Server: 1, UID: 11, MinLevel: 2, MaxLevel: 3}
	for what, c := range map[string]struct {
		known  bool
		change func(*Hello)
		ready  Code
		before Code
	}{
		"a server that joined":  {false, func(h *Hello) { h.Level, h.MaxLevel = 2, 2 }, UnknownServer, Busy},
		"one that lags":         {true, func(h *Hello) { h.Level, h.MaxLevel = 1, 2 }, LevelUnknown, Busy},
		"another cluster":       {true, func(h *Hello) { h.Cluster++ }, OtherCluster, OtherCluster},
		"for another server":    {true, func(h *Hello) { h.Receiver = 3 }, WrongServer, WrongServer},
		"with the id of this":   {true, func(h *Hello) { h.Server = 1 }, OwnID, OwnID},
		"one that was removed":  {true, func(h *Hello) { h.Server = 8 }, Removed, Removed},
		"nothing wrong with it": {true, func(h *Hello) { h.Level, h.MaxLevel = 2, 2 }, 0, 0},
	} {
		h := visitHello()
		c.change(&h)
		for ready, want := range map[bool]Code{true: c.ready, false: c.before} {
			examiner := Examiner{
				Self: self, Ready: ready, Removed: func(id uint64) bool { return id == 8 },
				Knows: func(uint64) bool { return c.known }, Takes: func(Hello) bool { return false },
			}
			got := Code(0)
			if refusal := examiner.Examine(h); refusal != nil {
				got = refusal.Code
			}
			if got != want {
				t.Errorf("%s, ready %t: %v, want %v", what, ready, got, want)
			}
		}
	}
}

func TestContests(t *testing.T) {
	for _, c := range []struct {
		what  string
		heard []uint64 // at the looks after the first
		gone  bool     // at the last look
		late  bool     // at the last look
		want  Step
		code  Code
	}{
		{what: "one look", heard: []uint64{5}, want: Wait},
		{what: "silent", heard: []uint64{5, 5, 5}, want: Wait},
		{what: "heard before the first look", heard: []uint64{9, 9}, want: Wait},
		{what: "alive", heard: []uint64{5, 6}, want: Reject, code: Duplicate},
		{what: "alive at the end", heard: []uint64{5, 6}, late: true, want: Reject, code: Duplicate},
		{what: "silent to the end", heard: []uint64{5, 5}, late: true, want: Reject, code: Busy},
		{what: "gone", heard: []uint64{5, 5}, gone: true, want: Admitted},
		{what: "gone at the end", heard: []uint64{5, 5}, gone: true, late: true, want: Reject, code: Busy},
	} {
		var p Peer[int]
		p.Join(Messages, as(22), 0)
		n := Newcomer[int]{Conn: 1, Hello: as(23)}
		got := p.Admit(1, &n, 4, false)
		for i, heard := range c.heard {
			if got.Step != Wait {
				t.Errorf("%s: %d at look %d", c.what, got.Step, i)
			}
			last := i+1 == len(c.heard)
			if c.gone && last {
				p.Part()
			}
			got = p.Admit(1, &n, heard, c.late && last)
		}
		if got.Step != c.want || got.Refusal != nil && got.Refusal.Code != c.code || got.Refusal == nil && c.code != 0 {
			t.Errorf("%s: %+v, want %d with %v", c.what, got, c.want, c.code)
		}
	}
}

// A newcomer of the same server waits only until the old connection for its lane has left. If
// that takes too long, it is refused for now.
func TestANewerConnectionReplacesAnOlderOne(t *testing.T) {
	var p Peer[int]
	for link := 1; link < 4; link++ {
		n := Newcomer[int]{Conn: link, Hello: as(22)}
		if link > 1 {
			if got := p.Admit(1, &n, 0, false); got.Step != Replace || p.Inbound(Messages) != link-1 {
				t.Fatalf("link %d: %+v", link, got)
			}
			if got := p.Admit(1, &n, 0, true); got.Step != Reject || got.Refusal.Code != Busy {
				t.Fatalf("link %d, too late: %+v", link, got)
			}
			p.Leave(Messages)
		}
		if got := p.Admit(1, &n, 0, true); got.Step != Admitted || p.Inbound(Messages) != link {
			t.Fatalf("link %d: %+v", link, got)
		}
	}
}

// A refusal for good is reported once, and ends with a connection for messages. A server that
// refused this one and is admitted is worth dialling at once.
func TestRefusalsAreReportedOnce(t *testing.T) {
	var p Peer[int]
	stranger, removed := Refuse(UnknownServer, "?"), Refuse(Removed, "?")
	for i, c := range []struct {
		refusal *Refusal
		want    bool
	}{{Refuse(Busy, "?"), false}, {stranger, true}, {stranger, false}, {removed, true}, {stranger, true}} {
		if got := p.Refused(c.refusal); got != c.want {
			t.Errorf("refusal %d: %t", i, got)
		}
	}
	if got := p.Admit(1, &Newcomer[int]{Conn: 1, Hello: as(22)}, 0, false); !got.Redial {
		t.Errorf("it has refused this server, and comes: %+v", got)
	}
	p.Join(Snapshots, as(22), 0)
	if p.Refused(stranger) {
		t.Error("a connection for a snapshot counts")
	}
	p.Join(Messages, as(22), 0)
	if got := p.Admit(1, &Newcomer[int]{Conn: 2, Hello: as(22), Lane: Frames}, 0, false); got.Redial {
		t.Errorf("it is connected, and comes: %+v", got)
	}
	if !p.Refused(stranger) {
		t.Error("it refuses this server after a connection")
	}
}

// A pause is never longer than the bound, and at least half of its nominal length. It is
// short again after a connection that lasted. A server is tried forever.
func TestBackoff(t *testing.T) {
	b := Backoff{Min: 20, Max: 500, Refused: 5000, Lasting: 1500}
	most, least := func(n int64) int64 { return 0 }, func(n int64) int64 { return n - 1 }
	for i, c := range []struct {
		lasted  int64
		refused bool
		chance  func(int64) int64
		want    int64
	}{
		{0, false, most, 20}, {0, false, most, 40}, {0, false, least, 40}, {0, false, most, 160}, {0, false, most, 320},
		{0, false, most, 500}, {0, false, most, 500}, {0, true, most, 5000}, {0, true, least, 2500}, {1500, false, most, 500},
		{1501, false, most, 20}, {0, false, most, 40},
	} {
		if got := b.Next(c.lasted, c.refused, c.chance); got != c.want {
			t.Errorf("pause %d is %d, want %d", i+1, got, c.want)
		}
	}
}
