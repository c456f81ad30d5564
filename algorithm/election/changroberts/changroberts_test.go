package changroberts

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestRepairedConforms(t *testing.T) { processtest.Conform(t, Repaired) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata/plain") }

func TestRepairedScripts(t *testing.T) { processtest.Script(t, Repaired, "testdata/repaired") }
