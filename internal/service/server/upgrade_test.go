package server_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// The level is shown and held over HTTP, and an invalid change is refused with one line.
func TestJSONUpgrade(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	servertest.Eventually(t, "the level is the newest", func() bool {
		return strings.Contains(b.do("GET", "/v1/upgrade", "").text, `"level":5,"target":5`)
	})
	for _, step := range []struct {
		method, body, want string
		status             int
	}{
		{"GET", "", `"level":5,"target":5,"held":false`, 200},
		{"POST", `{"action":"hold"}`, `"level":5,"target":5,"held":true`, 200},
		{"POST", `{"action":"hold"}`, `"held":true`, 200},
		{"POST", `{"action":"finish","level":6}`, `level 6: no member reads it`, 400},
		{"POST", `{"action":"lower","level":0}`, `from level 5 the cluster can come down to 4 only`, 400},
		{"POST", `{"action":"lower","level":4}`, `"level":4,"target":5,"held":true`, 200},
		{"POST", `{"action":"lower","level":3}`, `"level":3,"target":5,"held":true`, 200},
		{"POST", `{"action":"lower","level":2}`, `"level":2,"target":5,"held":true`, 200},
		{"POST", `{"action":"lower","level":1}`, `"level":1,"target":5,"held":true`, 200},
		{"POST", `{"action":"lower","level":0}`, `level 1: the cluster cannot come down further`, 400},
		{"POST", `{"action":"finish","level":5}`, `"level":5,"target":5`, 200},
		{"POST", `{"action":"release"}`, `"held":false`, 200},
		{"POST", `{"action":"onward"}`, `must be finish, hold, release or lower`, 400},
	} {
		got := b.do(step.method, "/v1/upgrade", step.body)
		if got.status != step.status || !strings.Contains(got.text, step.want) {
			t.Errorf("%s %s: %d %s, want %d and %s", step.method, step.body, got.status, got.text, step.status, step.want)
		}
	}
}
