package server_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// A server logs the number and the hash of the last record of acts.
func TestAnchor(t *testing.T) {
	t.Parallel()
	var log lines
	c := servertest.Start(t, 1, func(cfg *config.Server) {
		cfg.AnchorEvery = 10 * time.Millisecond
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	client := program(t, c.Address(1), "")
	servertest.Eventually(t, "the level has records", func() bool {
		_, err := admin.New(client).ChangeAccess(context.Background(), admin.AccessChange{Edits: []admin.AccessEdit{admin.PutRole(admin.Role{Name: "spare", Rules: []string{"allow status"}})}})
		return err == nil
	})
	records, err := admin.New(client).AuditLog(t.Context(), admin.AuditQuery{Kind: "access"})
	if err != nil || len(records) == 0 {
		t.Fatalf("the records are %v, %v", records, err)
	}
	servertest.Eventually(t, "the log has the hash", func() bool {
		said := log.String()
		return strings.Contains(said, `msg="the audit records end here" chain=acts number=`) && strings.Contains(said, "hash="+records[len(records)-1].Hash)
	})
}
