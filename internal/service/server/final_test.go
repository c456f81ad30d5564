package server

import (
	"errors"
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/transport"
	"github.com/conclave-io/conclave/internal/service/version"
)

// A restart does not help a release that cannot read the level of its cluster.
func TestFinal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		final bool
	}{
		{version.Check("the state of the cluster", 2, 1, 1), true},
		{&transport.Refusal{Code: peering.LevelUnknown, Text: "server 1 reads levels 1 to 1"}, true},
		{&transport.Refusal{Code: peering.Copied, Text: "two processes run with the data of server 1"}, true},
		{&transport.Refusal{Code: peering.Superseded, Text: "two processes run with the data of server 1"}, true},
		{&transport.Refusal{Code: peering.OtherCluster, Text: "server 1 belongs to another cluster"}, false},
		{errors.New("address already in use"), false},
	} {
		if got := Final(fmt.Errorf("server 1 stopped: %w", c.err)); got != c.final {
			t.Errorf("%v: final is %v", c.err, got)
		}
	}
}
