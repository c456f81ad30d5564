package peering

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/founding"
)

// visitHello is an introduction of server 2 to server 1.
func visitHello() Hello {
	return Hello{
		Version: ProtocolVersion, Cluster: 0xc0ffee, Server: 2, UID: 22, Receiver: 1,
		PeerAddress: "127.0.0.1:7502", ClientAddress: "client-of-2:7400",
		Phase: founding.New, MinLevel: 1, MaxLevel: 1, Build: "test",
	}
}

func TestHelloSurvives(t *testing.T) {
	for _, h := range []Hello{
		visitHello(),
		{Version: 1, Server: 1, MinLevel: 1, MaxLevel: 1},
		{
			Version: 1<<32 - 1, Cluster: 1<<64 - 1, Server: 1 << 40, UID: 1<<64 - 2, PeerAddress: "[::1]:7500",
			ClientAddress: strings.Repeat("x", maxText), Receiver: 1<<64 - 3,
			Phase: founding.Founded, Record: founding.Record{{ID: 1, UID: 1<<64 - 1}, {ID: 1 << 63, UID: 1}},
			MinLevel: 2, MaxLevel: 1<<32 - 1, Level: 3, Build: strings.Repeat("b", MaxBuild),
		},
		{
			Version: 1, Server: 1, MinLevel: 1, MaxLevel: 1, Nonce: 1<<64 - 1, Age: maxAge,
			Copies: []Copy{{Server: 2, Where: "10.0.0.2:7500 (from 10.0.0.9)", Ago: maxAge}, {Server: 3}},
		},
	} {
		got, err := DecodeHello(h.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestLargestHelloFits: what a correct server says is never too large to be read.
func TestLargestHelloFits(t *testing.T) {
	h := visitHello()
	h.PeerAddress, h.ClientAddress = strings.Repeat("x", maxText), strings.Repeat("x", maxText)
	h.Build = strings.Repeat("b", MaxBuild)
	h.Phase = founding.Founded
	for i := range uint64(founding.MaxFounders) {
		h.Record = append(h.Record, founding.Founder{ID: 1<<63 + i, UID: 1<<64 - 1})
	}
	h.Nonce, h.Age = 1<<64-1, maxAge
	for range MostCopies {
		h.Copies = append(h.Copies, Copy{Server: 1<<64 - 1, Where: strings.Repeat("x", maxWhere), Ago: maxAge})
	}
	if _, err := DecodeHello(h.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if size := 2 + len(h.Append(nil)); size > MaxGreeting {
		t.Errorf("it has %d bytes, and a greeting at most %d", size, MaxGreeting)
	}
}

// TestHelloOfALaterReleaseIsUnderstood: bytes after the known fields are skipped,
// whatever the version, and an unknown phase counts as no answer.
func TestHelloOfALaterReleaseIsUnderstood(t *testing.T) {
	for _, version := range []uint32{ProtocolVersion, ProtocolVersion + 1} {
		h := visitHello()
		h.Version, h.Phase, h.Nonce = version, founding.Phases, 7
		got, err := DecodeHello(wire.AppendBytes(h.Append(nil), "a field of the future"))
		if err != nil {
			t.Fatal(err)
		}
		h.Phase = founding.NotReady
		if diff := cmp.Diff(h, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMalformedHello(t *testing.T) {
	with := func(change func(*Hello)) []byte {
		h := visitHello()
		change(&h)
		return h.Append(nil)
	}
	whole := visitHello().Append(nil)
	wide := wire.AppendUint(visitHello().Append(nil)[:len(whole)-len(visitHello().Build)-4], 1<<32)
	for want, input := range map[string][]byte{
		"input ends too early":              whole[:len(whole)-1],
		"protocol version 0":                with(func(h *Hello) { h.Version = 0 }),
		"protocol version: 4294967296":      wire.AppendUint(nil, 1<<32),
		"level: 4294967296":                 wide,
		"server id 0 is reserved":           with(func(h *Hello) { h.Server = 0 }),
		"server id 1844674407370955":        with(func(h *Hello) { h.Server = 1<<64 - 1 }),
		"at most 1024 are allowed":          with(func(h *Hello) { h.PeerAddress = strings.Repeat("x", maxText+1) }),
		"contains control characters":       with(func(h *Hello) { h.ClientAddress = "a\nb" }),
		"is not valid UTF-8":                with(func(h *Hello) { h.ClientAddress = "\xff" }),
		"levels: 0 to 1":                    with(func(h *Hello) { h.MinLevel = 0 }),
		"levels: 3 to 2":                    with(func(h *Hello) { h.MinLevel, h.MaxLevel = 3, 2 }),
		"at most 64 are allowed":            with(func(h *Hello) { h.Build = strings.Repeat("x", MaxBuild+1) }),
		"build \"a\\nb\" contains control":  with(func(h *Hello) { h.Build = "a\nb" }),
		"ids must be positive and ascendi":  with(func(h *Hello) { h.Record = founding.Record{{ID: 2, UID: 1}, {ID: 1, UID: 1}} }),
		"server 2: missing uid":             with(func(h *Hello) { h.Record = founding.Record{{ID: 2}} }),
		"must be at most 128":               with(func(h *Hello) { h.Record = make(founding.Record, founding.MaxFounders+1) }),
		"age: 4611686018427387905 ns":       with(func(h *Hello) { h.Nonce, h.Age = 7, maxAge+1 }),
		"copies: 9: must be at most 8":      with(func(h *Hello) { h.Nonce, h.Copies = 7, make([]Copy, MostCopies+1) }),
		"refused 4611686018427387905 ns":    with(func(h *Hello) { h.Nonce, h.Copies = 7, []Copy{{Server: 3, Ago: maxAge + 1}} }),
		"copy of server 3: address \"\\n\"": with(func(h *Hello) { h.Nonce, h.Copies = 7, []Copy{{Server: 3, Where: "\n"}} }),
	} {
		_, err := DecodeHello(input)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "malformed introduction: ") {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

func TestRefusalSurvives(t *testing.T) {
	want := Refuse(Duplicate, "two servers have the id %d", 2)
	got, err := DecodeRefusal(want.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range [][]byte{nil, {1}, {1, 5, 'x'}, append(want.Append(nil), 'x'), Refuse(Busy, "a\nb").Append(nil)} {
		if r, err := DecodeRefusal(bad); err == nil {
			t.Errorf("% x was taken for %v", bad, r)
		}
	}
}

func TestCodesArePermanent(t *testing.T) {
	var names []string
	for c := range Code(13) {
		names = append(names, c.String())
	}
	want := []string{
		"code 0", "busy", "other cluster", "unknown server", "own id", "duplicate id", "newer version", "wrong server", "removed", "level unknown", "wrong certificate",
		"copy of a server", "superseded by a copy",
	}
	if !slices.Equal(names, want) {
		t.Errorf("codes are %q, want %q: they travel on the wire", names, want)
	}
	if got := Refuse(Busy, "later").Append(nil); !slices.Equal(got, wire.AppendBytes([]byte{1}, "later")) {
		t.Errorf("a refusal is encoded as % x", got)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(visitHello().Append(nil))
	f.Add([]byte{2, 0, 1, 0, 0, 0, 0, 9, 0, 1, 1, 0, 0, 9, 9})
	f.Add(append(visitHello().Append(nil), 0xff))
	named := visitHello()
	named.Nonce, named.Age, named.Copies = 7, 1e9, []Copy{{Server: 3, Where: "10.0.0.3:7500", Ago: 5e9}}
	f.Add(append(named.Append(nil), 1, 2, 3))
	f.Fuzz(func(t *testing.T, input []byte) {
		h, err := DecodeHello(input)
		if err != nil {
			return
		}
		again, err := DecodeHello(h.Append(nil))
		if err != nil || !cmp.Equal(again, h) {
			t.Fatalf("%+v came back as %+v, %v", h, again, err)
		}
	})
}

func FuzzRefusal(f *testing.F) {
	f.Add(Refuse(Busy, "later").Append(nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		r, err := DecodeRefusal(input)
		if err != nil {
			return
		}
		if again, err := DecodeRefusal(r.Append(nil)); err != nil || *again != *r {
			t.Fatalf("%+v came back as %+v, %v", r, again, err)
		}
	})
}
