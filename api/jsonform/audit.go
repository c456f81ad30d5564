package jsonform

import (
	"bytes"
	"encoding/json"
	"time"
)

// AuditRecord is the record of an administrative act, or of a refused one. It is a line of the
// audit log that servers write, and they send it in the same form.
type AuditRecord struct {
	// V is the version of the form, which is 1.
	V int `json:"v"`
	// Chain is "acts" or "refusals". In the audit log of a server it may also be "server" or
	// "grants". Each record has the hash of the previous one in its chain.
	Chain string `json:"chain"`
	// Number orders the records of a cluster, and a server's records in its own chains.
	Number uint64    `json:"number,string" tstype:"Uint64"`
	Time   time.Time `json:"time"`
	// Term is the term of the leader.
	Term uint64 `json:"term,string" tstype:"Uint64"`
	// Server is the server whose audit log has the record. It is 0 in the log of the cluster.
	Server uint64 `json:"server,omitempty"`
	// Kind is what was done: "access", "revoke", "end-session", "drop", "member", "level",
	// "guard", "backup" and others.
	Kind string `json:"kind"`
	// Actor is the principal that did it. It is empty for an anonymous caller, and for an act of
	// the servers themselves. Via and Remote say where the request came from, as in Caller.
	Actor  string `json:"actor,omitempty"`
	Via    string `json:"via,omitempty"`
	Remote string `json:"remote,omitempty"`
	// Request identifies the request: 32 hexadecimal digits.
	Request string       `json:"request,omitempty"`
	Target  *AuditTarget `json:"target,omitempty"`
	// Reason is why it was done, or what exactly was changed.
	Reason string `json:"reason,omitempty"`
	// Result is "OK", or why the request was refused.
	Result string `json:"result"`
	// Count is how many times in a row the same request was refused.
	Count uint64 `json:"count"`
	// Previous is the hash of the previous record of the chain. Hash is the hash of this one.
	Previous string `json:"previous"`
	Hash     string `json:"hash"`
}

// AuditTarget is the object of an act.
type AuditTarget struct {
	// Class is "lock" or "election" if Name is the name of one. Other names are those of a session,
	// a guarded prefix or a chain, depending on the kind.
	Class  string `json:"class,omitempty"`
	Name   string `json:"name,omitempty"`
	Fence  uint64 `json:"fence,omitempty,string" tstype:"Uint64"`
	Owner  string `json:"owner,omitempty"`
	Server uint64 `json:"server,omitempty"`
}

// Append appends the record to b as a line of an audit log.
func (r *AuditRecord) Append(b []byte) []byte {
	out := bytes.NewBuffer(b)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		panic(err) // every field has a JSON form
	}
	return out.Bytes()
}
