package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// version is the version of the format of lines. Fields are only ever added.
const version = 1

// The chains of records. Each line has the hash of the previous line in its chain.
const (
	// Acts and Refusals are replicated: all servers have the same records.
	Acts, Refusals = "acts", "refusals"
	// Own has the records that a server makes itself, in its own file only.
	Own = "server"
)

// KindGap is the kind of a line that announces missing lines. The name of its target is
// the chain.
const KindGap = "gap"

// KindFile is the kind of a line about the file that it is in.
const KindFile = "audit-file"

// KindStart is the kind of a line that says that the server has started.
const KindStart = "start"

var classes = []string{registry.Lock: "lock", registry.Election: "election", registry.View: "view"}

// LineOf returns the line of a record in a chain, given the hash of the previous one.
func LineOf(chain string, previous [sha256.Size]byte, rec *registry.Record) jsonform.AuditRecord {
	l := jsonform.AuditRecord{
		V: version, Chain: chain, Number: rec.Number, Time: time.Unix(0, rec.Time).UTC(), Term: rec.Term,
		Kind: rec.Kind, Actor: rec.Origin.Actor, Via: rec.Origin.Via, Remote: rec.Origin.Remote,
		Reason: rec.Reason, Result: api.MeaningOf(api.Code(rec.Result)).Name, Count: rec.Count,
		Previous: hex.EncodeToString(previous[:]), Hash: hex.EncodeToString(rec.Hash[:]),
	}
	if rec.Origin.Request != [16]byte{} {
		l.Request = hex.EncodeToString(rec.Origin.Request[:])
	}
	target := jsonform.AuditTarget{Name: rec.Name, Fence: rec.Fence, Owner: rec.Owner, Server: rec.Server}
	if Named(rec) || rec.Class != registry.Lock {
		target.Class = className(rec.Class)
	}
	if target != (jsonform.AuditTarget{}) {
		l.Target = &target
	}
	return l
}

func className(class registry.Class) string {
	if int(class) < len(classes) {
		return classes[class]
	}
	return fmt.Sprint(class)
}

// Named reports whether a record is about a lock or an election. Only callers that may read
// its name see such a record.
func Named(rec *registry.Record) bool {
	switch rec.Kind {
	case "revoke", "drop", kindGrant, kindEnd:
		return true
	}
	return false
}

// ParseLine reads a line.
func ParseLine(text []byte) (jsonform.AuditRecord, error) {
	var l jsonform.AuditRecord
	if err := json.Unmarshal(text, &l); err != nil {
		return l, errors.New("not a line of an audit log")
	}
	if l.V != version {
		return l, fmt.Errorf("v: %d: must be %d", l.V, version)
	}
	return l, nil
}

// recordOfLine returns the record of a line, and the hash of the previous one.
func recordOfLine(l *jsonform.AuditRecord) (rec registry.Record, previous [sha256.Size]byte, err error) {
	target := jsonform.AuditTarget{}
	if l.Target != nil {
		target = *l.Target
	}
	rec = registry.Record{
		Number: l.Number, Time: l.Time.UnixNano(), Term: l.Term, Kind: l.Kind,
		Origin: registry.Origin{Actor: l.Actor, Via: l.Via, Remote: l.Remote},
		Name:   target.Name, Fence: target.Fence, Owner: target.Owner, Server: target.Server,
		Reason: l.Reason, Count: l.Count,
	}
	if err := readHex("request", l.Request, rec.Origin.Request[:]); err != nil && l.Request != "" {
		return rec, previous, err
	}
	if err := errors.Join(readHex("previous", l.Previous, previous[:]), readHex("hash", l.Hash, rec.Hash[:])); err != nil {
		return rec, previous, err
	}
	if rec.Class, err = classOf(target.Class); err != nil {
		return rec, previous, err
	}
	rec.Result, err = resultOf(l.Result)
	return rec, previous, err
}

func readHex(key, text string, into []byte) error {
	if n, err := hex.Decode(into, []byte(text[:min(len(text), 2*len(into))])); err != nil || n != len(into) || len(text) != 2*n {
		return fmt.Errorf("%s: %.64q: must be %d hexadecimal digits", key, text, 2*len(into))
	}
	return nil
}

func classOf(name string) (registry.Class, error) {
	for class, known := range classes {
		if name == known {
			return registry.Class(class), nil
		}
	}
	if name == "" {
		return registry.Lock, nil
	}
	return 0, fmt.Errorf("class: %.64q: must be lock, election or view", name)
}

func resultOf(name string) (registry.Code, error) {
	for code := range api.Code_name {
		if api.MeaningOf(api.Code(code)).Name == name {
			return registry.Code(code), nil
		}
	}
	return 0, fmt.Errorf("result: %.64q: unknown", name)
}
