package generals

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestConformConsistency(t *testing.T) { processtest.Conform(t, Consistency) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata/generals") }

func TestScriptsConsistency(t *testing.T) {
	processtest.Script(t, Consistency, "testdata/interactive-consistency")
}
