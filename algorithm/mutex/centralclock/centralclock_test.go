package centralclock

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }
