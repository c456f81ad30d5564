package peering

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/test/golden"
)

// TestGoldenHello: a Hello of the first release is decoded correctly. Fields are only
// added at the end, so a later release writes the same bytes and more.
func TestGoldenHello(t *testing.T) {
	want := Hello{
		Version: 1, Cluster: 0xc0ffee, Server: 2, UID: 1 << 63, Receiver: 3,
		PeerAddress: "10.0.0.2:7500", ClientAddress: "conclave-2.example:7400",
		Phase:    founding.NotReady,
		Record:   founding.Record{{ID: 1, UID: 11}, {ID: 2, UID: 1 << 63}, {ID: 3, UID: 33}},
		MinLevel: 1, MaxLevel: 2, Level: 1, Build: "v0.1.0",
	}
	kept := golden.Same(t, 1, "hello", want.Append(nil))
	got, err := DecodeHello(kept)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want.Nonce, want.Age, want.Copies = 7, 9, []Copy{{Server: 2, Where: "10.0.0.9:7500", Ago: 5}}
	if later := want.Append(nil); !bytes.HasPrefix(later, kept) || len(later) == len(kept) {
		t.Errorf("with a nonce it is %x, not the bytes of the first release and more", later)
	}
}
