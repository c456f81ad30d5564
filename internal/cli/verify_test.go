package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// acts returns the log of a server that has written n acts.
func acts(n int) string {
	var chain registry.Chain
	for i := range n {
		rec := registry.Record{
			Number: uint64(i + 1), Kind: "revoke", Origin: registry.Origin{Actor: "cert:alice", Via: "grpc", Remote: "10.0.0.9:5512", Request: [16]byte{1}},
			Class: registry.Election, Name: fmt.Sprint("chief-", i), Fence: 7, Owner: "cert:bob", Server: 2, Reason: "db1 goes down", Result: registry.OK, Count: 1,
		}
		before := chain.Before
		if i > 0 {
			before = chain.Records[i-1].Hash
		}
		rec.Hash = rec.Chained(before)
		chain.Records = append(chain.Records, &rec)
	}
	journal := audit.NewJournal(1)
	journal.Resume(nil)
	var text []byte
	for _, l := range journal.Next(1, registry.Trail{Numbered: uint64(n), Acts: chain}, true, nil) {
		text = l.Append(text)
	}
	return string(text)
}

// TestVerifyAuditLog: files that servers wrote are good, and what was altered is named.
func TestVerifyAuditLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.log")
	for _, c := range []struct {
		text   string
		status int
		wants  string
	}{
		{acts(3), 0, "4 lines are as servers wrote them; servers reported missing records in 0 places\n"},
		{strings.Replace(acts(3), "chief-1", "chief-9", 1), StatusNo, name + ":3: record 2 of acts: its hash is "},
		{strings.Replace(acts(3), "\n{\"v\":1,\"chain\":\"acts\",\"number\":\"2\"", "\n{\"v\":2,\"chain\":\"acts\",\"number\":\"2\"", 1), StatusNo, name + ":3: v: 2: must be 1"},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, printed, said := inProcess("audit-log", "--verify", name)
		if status != c.status || !strings.HasPrefix(printed+said, c.wants) {
			t.Errorf("status %d, %s%s; want %d, %s", status, printed, said, c.status, c.wants)
		}
	}
}
