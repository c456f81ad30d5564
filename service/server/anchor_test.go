package server_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/service/server"
	"github.com/conclave-io/conclave/service/server/servertest"
)

// said keeps the log of a server.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

// A server logs where the records of acts end, with the hash that the record has.
func TestAnchor(t *testing.T) {
	t.Parallel()
	log := new(said)
	c := servertest.Start(t, 1, func(cfg *server.Config) {
		cfg.AnchorEvery = 10 * time.Millisecond
		cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	client := program(t, c.Address(1), "")
	servertest.Eventually(t, "the level has records", func() bool {
		_, err := client.ChangeAccess(context.Background(), conclave.AccessChange{Edits: []conclave.AccessEdit{conclave.PutRole(conclave.Role{Name: "spare", Rules: []string{"allow status"}})}})
		return err == nil
	})
	records, err := client.AuditLog(t.Context(), conclave.AuditQuery{Kind: "access"})
	if err != nil || len(records) == 0 {
		t.Fatalf("the records are %v, %v", records, err)
	}
	servertest.Eventually(t, "the log has the hash", func() bool {
		return log.has(`msg="the audit records end here" chain=acts number=`) && log.has("hash="+records[len(records)-1].Hash)
	})
}
