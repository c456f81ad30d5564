package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// A server logs that another process runs with its data: once a minute, and not because of what was
// refused before it started, which may have been itself. What is known of any server ends after a
// while.
func TestCopiesThatOthersRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := copies{self: 2, began: time.Now(), log: slog.New(slog.NewTextHandler(&log, nil))}
		hear := func(by, server uint64, ago time.Duration) {
			c.heard(transport.Hello{Server: by, Copies: []peering.Copy{{Server: server, Where: "10.0.0.9:7500", Ago: uint64(ago)}}})
		}
		lines := func() int {
			return strings.Count(log.String(), "another process runs with a copy of the data of this server")
		}
		hear(1, 2, 5*time.Second)
		if lines() != 0 {
			t.Errorf("what was refused before the start is logged: %s", &log)
		}
		time.Sleep(2 * time.Minute)
		hear(1, 2, time.Second)
		hear(3, 2, 0)
		hear(3, 1, 0)
		if lines() != 1 || !strings.Contains(log.String(), "refused_by=1") {
			t.Errorf("the log says: %s", &log)
		}
		if got := c.of(2); got.By != 3 || got.Where != "10.0.0.9:7500" {
			t.Errorf("the last is %+v", got)
		}
		time.Sleep(2 * time.Minute)
		hear(1, 2, 0)
		if lines() != 2 {
			t.Errorf("two minutes later, the log says: %s", &log)
		}
		time.Sleep(transport.CopiesShown)
		if got := c.of(2); got != (CopyRefused{}) {
			t.Errorf("after %v it still knows of %+v", transport.CopiesShown, got)
		}
	})
}
