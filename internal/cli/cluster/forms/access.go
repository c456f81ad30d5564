package forms

import (
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// RulesOf returns the form of the access rules.
func RulesOf(a admin.Access) jsonform.Rules {
	return jsonform.Rules{
		Mode: a.Mode, Revision: jsonform.Uint64(a.Revision), Names: a.Names, Roles: ui.Each(a.Roles, RoleOf),
		Bindings: ui.Each(a.Bindings, func(b admin.Binding) jsonform.Binding { return jsonform.Binding(b) }),
		Tokens:   ui.Each(a.Tokens, TokenOf), Quotas: ui.Each(a.Quotas, QuotaOf),
	}
}

// RoleOf returns the form of a role.
func RoleOf(r admin.Role) jsonform.Role { return jsonform.Role(r) }

// TokenOf returns the form of a token.
func TokenOf(t admin.Token) jsonform.Token {
	return jsonform.Token{
		ID: t.ID, Name: t.Name, Creator: t.Creator, Made: t.Made, Expires: t.Expires, Note: t.Note, PeerAddress: t.PeerAddress, Used: t.Used,
	}
}

// QuotaOf returns the form of a quota.
func QuotaOf(q admin.Quota) jsonform.Quota {
	return jsonform.Quota{
		Who: q.Who, Prefix: q.Prefix, Sessions: jsonform.Uint64(q.Sessions), Claims: jsonform.Uint64(q.Claims), Bytes: jsonform.Uint64(q.Bytes),
		Requests: jsonform.Uint64(q.Requests),
	}
}

// AccessChanged is the result of a change of the access rules.
type AccessChanged struct {
	Done string `json:"done"`
	jsonform.AccessChanged
	// Revoked is the number of holders that were asked to leave.
	Revoked int `json:"revoked"`
}

// AccessChangedOf returns the form of the result of a change.
func AccessChangedOf(done string, c admin.AccessChanged, revoked int) AccessChanged {
	return AccessChanged{done, jsonform.AccessChanged{
		Revision: jsonform.Uint64(c.Revision), Denied: jsonform.Uint64(c.Denied), Holds: ui.Each(c.Holds, deniedHoldOf),
	}, revoked}
}

func deniedHoldOf(h admin.DeniedHold) jsonform.DeniedHold {
	class := "lock"
	if h.Election {
		class = "election"
	}
	return jsonform.DeniedHold{Class: class, Name: h.Name, Fence: jsonform.Uint64(h.Fence), Owner: h.Owner, Session: SessionIDOf(h.Session)}
}

// WhoAmI is the caller as the servers see it, and the mode of the rules.
type WhoAmI struct {
	jsonform.WhoAmI
	Mode string `json:"mode"`
}

// WhoAmIOf returns the form of a caller.
func WhoAmIOf(c admin.Caller) WhoAmI {
	return WhoAmI{jsonform.WhoAmI{Principal: c.Principal, Via: c.Via, Remote: c.Remote, Roles: append([]string{}, c.Roles...)}, c.Mode}
}

// VerdictOf returns the form of a verdict.
func VerdictOf(v admin.Verdict) jsonform.Verdict {
	return jsonform.Verdict{Allowed: v.Allowed, Why: v.Why, Roles: append([]string{}, v.Roles...)}
}
