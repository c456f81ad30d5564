package transport

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/wire"
)

func TestHelloSurvives(t *testing.T) {
	for _, h := range []Hello{
		visitHello(),
		{Version: 1, Server: 1},
		{
			Version: 1, Cluster: 1<<64 - 1, Server: 1 << 40, UID: 1<<64 - 2, PeerAddress: "[::1]:7500",
			ClientAddress: strings.Repeat("x", maxText), KnownUID: 7, Receiver: 1<<64 - 3,
		},
	} {
		got, err := decodeHello(h.append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestHelloOfNewerVersionIsUnderstood(t *testing.T) {
	h := visitHello()
	h.Version = ProtocolVersion + 1
	got, err := decodeHello(wire.AppendBytes(h.append(nil), "a field of the future"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h, got); diff != "" {
		t.Error(diff)
	}
}

func TestMalformedHello(t *testing.T) {
	with := func(change func(*Hello)) []byte {
		h := visitHello()
		change(&h)
		return h.append(nil)
	}
	whole := visitHello().append(nil)
	for want, input := range map[string][]byte{
		"input ends too early":        whole[:len(whole)-1],
		"1 bytes left over":           append(whole, 0),
		"protocol version 0":          with(func(h *Hello) { h.Version = 0 }),
		"is over 32 bits":             wire.AppendUint(nil, 1<<32),
		"server id 0 is reserved":     with(func(h *Hello) { h.Server = 0 }),
		"server id 1844674407370955":  with(func(h *Hello) { h.Server = 1<<64 - 1 }),
		"at most 1024 are allowed":    with(func(h *Hello) { h.PeerAddress = strings.Repeat("x", maxText+1) }),
		"contains control characters": with(func(h *Hello) { h.ClientAddress = "a\nb" }),
		"is not valid UTF-8":          with(func(h *Hello) { h.ClientAddress = "\xff" }),
	} {
		_, err := decodeHello(input)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "malformed introduction: ") {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

func TestRefusalSurvives(t *testing.T) {
	want := refuse(Duplicate, "two servers have the id %d", 2)
	got, err := decodeRefusal(want.append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range [][]byte{nil, {1}, {1, 5, 'x'}, append(want.append(nil), 'x'), refuse(Busy, "a\nb").append(nil)} {
		if r, err := decodeRefusal(bad); err == nil {
			t.Errorf("% x was taken for %v", bad, r)
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add(visitHello().append(nil))
	f.Add([]byte{2, 0, 1, 0, 0, 0, 0, 0, 9, 9})
	f.Fuzz(func(t *testing.T, input []byte) {
		h, err := decodeHello(input)
		if err != nil {
			return
		}
		again, err := decodeHello(h.append(nil))
		if err != nil || again != h {
			t.Fatalf("%+v came back as %+v, %v", h, again, err)
		}
	})
}

func FuzzRefusal(f *testing.F) {
	f.Add(refuse(Busy, "later").append(nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		r, err := decodeRefusal(input)
		if err != nil {
			return
		}
		if again, err := decodeRefusal(r.append(nil)); err != nil || *again != *r {
			t.Fatalf("%+v came back as %+v, %v", r, again, err)
		}
	})
}
