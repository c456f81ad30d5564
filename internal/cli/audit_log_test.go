package cli

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/audit"
)

// TestAuditRecordIsALine: a program gets the same records from a cluster as servers write
// to files, with all fields.
func TestAuditRecordIsALine(t *testing.T) {
	line := strings.Split(acts(1), "\n")[1]
	var rec conclave.AuditRecord
	if err := json.Unmarshal([]byte(line), &rec); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&rec)
	if err != nil || string(again) != line {
		t.Errorf("%v\n%s\nis not\n%s", err, again, line)
	}
	one, two := reflect.TypeFor[conclave.AuditRecord](), reflect.TypeFor[audit.Line]()
	for i := range max(one.NumField(), two.NumField()) {
		if one.Field(i).Tag != two.Field(i).Tag {
			t.Errorf("field %d is %s, and %s", i, one.Field(i).Tag, two.Field(i).Tag)
		}
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
