package access

import (
	"cmp"
	"fmt"
)

// Amount is how much somebody has, or may have: sessions, claims (holds and waits), bytes
// of values, and requests per second. Requests are no part of the state: each server counts
// those that it takes.
type Amount struct {
	Sessions, Claims, Bytes, Requests uint64
}

// DefaultAmount is what a principal may have of which no quota says more or less. Its
// requests have no bound.
var DefaultAmount = Amount{Sessions: 1000, Claims: 100_000, Bytes: 64 << 20}

// Quota bounds what each principal may have that Who stands for, as in a Binding, or, if
// Who is empty, what all together may have under a prefix, where sessions and requests do not count. A
// principal has the quota that names it, else that with the longest pattern, else that of
// everyone. Where an amount is 0, a principal has the default, and a prefix no bound.
type Quota struct {
	Who, Prefix string
	Most        Amount
}

// key is what a quota is put and dropped by. Neither part has a 0 in it.
func (q Quota) key() string { return q.Who + "\x00" + q.Prefix }

// of names whose quota it is.
func (q Quota) of() string {
	if q.Who == "" {
		return PrefixQuota(q.Prefix)
	}
	return q.Who
}

// validateKey looks at whose quota it is.
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

// or fills the amounts in that are 0.
func (a Amount) or(other Amount) Amount {
	return Amount{cmp.Or(a.Sessions, other.Sessions), cmp.Or(a.Claims, other.Claims), cmp.Or(a.Bytes, other.Bytes), cmp.Or(a.Requests, other.Requests)}
}

// QuotaError says that somebody would have more than its quota.
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

// More reports which amount of a quota would be passed if somebody who has an amount gets
// more, or returns nil. Only what grows is asked for.
func (most Amount) More(who string, have, more Amount) *QuotaError {
	for _, kind := range []struct {
		name             string
		have, more, most uint64
	}{
		{"sessions", have.Sessions, more.Sessions, most.Sessions},
		{"claims", have.Claims, more.Claims, most.Claims},
		{"bytes", have.Bytes, more.Bytes, most.Bytes},
	} {
		if kind.most != 0 && kind.more != 0 && kind.have+kind.more > kind.most {
			return &QuotaError{who, kind.name, kind.have, kind.most}
		}
	}
	return nil
}

// PrefixQuota names the holder of a quota for a prefix, in a QuotaError.
func PrefixQuota(prefix string) string { return "prefix " + quoted(prefix) }
