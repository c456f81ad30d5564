package byload

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestListConforms(t *testing.T) { processtest.Conform(t, List) }

func TestRingConforms(t *testing.T) { processtest.Conform(t, Ring) }

func TestBullyConforms(t *testing.T) { processtest.Conform(t, Bully) }

func TestListScripts(t *testing.T) { processtest.Script(t, List, "testdata/list") }

func TestRingScripts(t *testing.T) { processtest.Script(t, Ring, "testdata/ring") }

func TestBullyScripts(t *testing.T) { processtest.Script(t, Bully, "testdata/bully") }
