package wrap_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Guards and sentinels are this binary too. Built with -race, each would sleep for a second at its end,
	// and others would end its command meanwhile.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	goleak.VerifyTestMain(m)
}
