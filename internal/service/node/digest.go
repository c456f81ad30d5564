package node

import (
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// appendDigest appends a digest in the form in which servers exchange it.
func appendDigest(b []byte, d replica.Digest) []byte {
	return wire.AppendUint(wire.AppendUint(wire.AppendUint(b, uint64(d.Version)), d.Index), d.Hash)
}

// readDigest reads what appendDigest wrote.
func readDigest(b []byte) (replica.Digest, error) {
	r := wire.NewReader(b)
	d := replica.Digest{Version: r.Uint32(), Index: r.Uint(), Hash: r.Uint()}
	return d, r.Close()
}
