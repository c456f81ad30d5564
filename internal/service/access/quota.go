package access

import (
	"cmp"
	"fmt"
)

// Amount is how much a principal has, or may have: sessions, claims (holds and waits), bytes of
// values, and requests per second. Requests are not part of the state: each server counts those
// that it accepts.
type Amount struct {
	Sessions, Claims, Bytes, Requests uint64
}

// DefaultAmount is the quota of a principal to which no other quota applies. It does not bound
// requests.
var DefaultAmount = Amount{Sessions: 1000, Claims: 100_000, Bytes: 64 << 20}

// Quota bounds what each principal may have that Who matches, as in a Binding. If Who is empty,
// it bounds what all principals together may have under a prefix, where sessions and requests do
// not count. To a principal applies the quota that names it, otherwise the one with the longest
// pattern, otherwise that of everyone. An amount of 0 means the default for principals and no
// bound for prefixes.
type Quota struct {
	Who, Prefix string
	Most        Amount
}

// key identifies a quota. Neither part contains a 0 byte.
func (q Quota) key() string { return q.Who + "\x00" + q.Prefix }

// of names the principals or the prefix that a quota applies to.
func (q Quota) of() string {
	if q.Who == "" {
		return PrefixQuota(q.Prefix)
	}
	return q.Who
}

// validateKey checks the principals or the prefix that a quota applies to.
func (q Quota) validateKey() error {
	switch {
	case q.Who == "" && q.Prefix == "":
		return invalid("quota", "", "must name a principal or a prefix")
	case q.Who != "" && q.Prefix != "":
		return invalid("quota", q.Who, "must name a principal or a prefix, not both")
	case q.Who == "":
		return validateText("prefix", q.Prefix, maxName)
	}
	return validatePattern(q.Who)
}

func (q Quota) validate() error {
	if err := q.validateKey(); err != nil {
		return err
	}
	if q.Who == "" && (q.Most.Sessions != 0 || q.Most.Requests != 0) {
		return invalid("quota", q.Prefix, "a prefix has no sessions and no requests; bound claims or bytes")
	}
	if q.Most == (Amount{}) {
		return invalid("quota", q.of(), "must bound sessions, claims, bytes or requests")
	}
	return nil
}

// or replaces the amounts that are 0.
func (a Amount) or(other Amount) Amount {
	return Amount{cmp.Or(a.Sessions, other.Sessions), cmp.Or(a.Claims, other.Claims), cmp.Or(a.Bytes, other.Bytes), cmp.Or(a.Requests, other.Requests)}
}

// QuotaError means that a quota would be exceeded.
type QuotaError struct {
	Who        string // a principal, or: prefix "reports/"
	Kind       string // "sessions", "claims" or "bytes"
	Have, Most uint64
}

func (e *QuotaError) Error() string {
	remedy := map[string]string{"sessions": "close some", "claims": "release some", "bytes": "make values smaller"}[e.Kind]
	what := e.Kind
	if e.Kind == "bytes" {
		what = "bytes of values"
	}
	return fmt.Sprintf("%s has %d of %d %s: %s, or have the quota raised", head(e.Who), e.Have, e.Most, what, remedy)
}

// More returns an error if a principal that has an amount would exceed a quota with more, or
// nil. It checks only the amounts that grow.
func (most Amount) More(who string, have, more Amount) *QuotaError {
	switch {
	case !allows(most.Sessions, have.Sessions, more.Sessions):
		return &QuotaError{who, "sessions", have.Sessions, most.Sessions}
	case !allows(most.Claims, have.Claims, more.Claims):
		return &QuotaError{who, "claims", have.Claims, most.Claims}
	case !allows(most.Bytes, have.Bytes, more.Bytes):
		return &QuotaError{who, "bytes", have.Bytes, most.Bytes}
	}
	return nil
}

// allows reports whether a quota allows more of what somebody has.
func allows(most, have, more uint64) bool { return most == 0 || more == 0 || have+more <= most }

// PrefixQuota is the value of Who in a QuotaError about a prefix.
func PrefixQuota(prefix string) string { return "prefix " + quoted(prefix) }
