package superpeer_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, superpeer.Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, superpeer.Spec, "testdata") }
