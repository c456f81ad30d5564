package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Acts returns the log of a server that has written n acts.
func Acts(n int) string {
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

// TestAuditRecordIsALine: a program gets the same records from a cluster as servers write
// to files, with all fields.
func TestAuditRecordIsALine(t *testing.T) {
	line := strings.Split(Acts(1), "\n")[1]
	var rec admin.AuditRecord
	if err := json.Unmarshal([]byte(line), &rec); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&rec)
	if err != nil || string(again) != line {
		t.Errorf("%v\n%s\nis not\n%s", err, again, line)
	}
	want := "1970-01-01T00:00:00Z  1  cert:alice  revoke chief-0 of cert:bob with fence 7 server 2: db1 goes down"
	if got := recordLine(&rec); got != want {
		t.Errorf("for people it is %q", got)
	}
	rec.Actor, rec.Via, rec.Target, rec.Result, rec.Count = "", "", nil, "DENIED", 3
	if got := recordLine(&rec); got != "1970-01-01T00:00:00Z  1  the servers  revoke: refused, DENIED, 3 times: db1 goes down" {
		t.Errorf("a refusal is %q", got)
	}
	if rec.Previous != strings.Repeat("0", 2*sha256.Size) {
		t.Errorf("the first record follows %s", rec.Previous)
	}
}
