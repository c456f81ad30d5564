package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// TestClocksAreShown: the status and the metrics of a server tell the clocks of the others.
func TestClocksAreShown(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 2)
	b := browse(t, c.Address(1))
	var clock map[string]any
	servertest.Eventually(t, "the drift is known", func() bool {
		all := b.get("/v1/status")["clocks"].([]any)
		if len(all) == 1 {
			clock = all[0].(map[string]any)
		}
		return clock["drift"] != nil
	})
	wrong, err := time.ParseDuration(clock["error"].(string))
	offset, bad := time.ParseDuration(clock["offset"].(string))
	drift, by := clock["drift"].(float64), clock["drift_error"].(float64)
	// Both servers read the same clocks.
	if err != nil || bad != nil || offset.Abs() > wrong+time.Millisecond || max(drift, -drift) > by || clock["server"] != 2.0 || clock["notable"] != nil {
		t.Errorf("got %v", clock)
	}
	resp, err := http.Get("http://" + c.Address(1) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	for _, want := range []string{"offset_seconds", "error_seconds", "drift_ratio", "drift_error_ratio"} {
		if line := "\nconclave_clock_" + want + `{peer="2"} `; err != nil || !strings.Contains(string(text), line) {
			t.Errorf("there is no line %q: %v", line, err)
		}
	}
}
