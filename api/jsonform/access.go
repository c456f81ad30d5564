package jsonform

import (
	"time"

	"github.com/conclave-io/conclave/api"
)

// Rules has all access rules.
type Rules struct {
	Mode     string    `json:"mode"`
	Revision Uint64    `json:"revision"`
	Names    []string  `json:"names"`
	Roles    []Role    `json:"roles"`
	Bindings []Binding `json:"bindings"`
	Tokens   []Token   `json:"tokens"`
	Quotas   []Quota   `json:"quotas"`
}

// RulesOf returns the form of the access rules.
func RulesOf(a *api.AccessResponse) Rules {
	return Rules{
		a.GetMode(), Uint64(a.GetRevision()), a.GetNames().GetNames(),
		each(a.GetRoleList(), RoleOf), each(a.GetBindings(), BindingOf), each(a.GetTokens(), TokenOf), each(a.GetQuotas(), QuotaOf),
	}
}

// Role is a list of rules with a name.
type Role struct {
	Name  string   `json:"name"`
	Rules []string `json:"rules"`
}

// RoleOf returns the form of a role.
func RoleOf(r *api.Role) Role { return Role{r.GetName(), texts(r.GetRules())} }

// Binding gives roles to a principal.
type Binding struct {
	Who   string   `json:"who"`
	Roles []string `json:"roles"`
}

// BindingOf returns the form of a binding.
func BindingOf(b *api.Binding) Binding { return Binding{b.GetWho(), b.GetRoles()} }

// Token is the record of a token, without its secret.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	Creator string    `json:"creator,omitempty"`
	Made    time.Time `json:"made,omitzero"`
	// Expires is absent if the token does not expire.
	Expires time.Time `json:"expires,omitzero"`
	Note    string    `json:"note,omitempty"`
	// PeerAddress is where a join token, which has no name, lets a server join, and Used whether
	// one has.
	PeerAddress string `json:"peer_address,omitempty"`
	Used        bool   `json:"used,omitempty"`
	// Hash is the SHA-256 of the secret, in hexadecimal digits. It appears only in requests.
	Hash string `json:"hash,omitempty"`
}

// TokenOf returns the form of a token.
func TokenOf(t *api.Token) Token {
	form := Token{ID: t.GetId(), Name: t.GetName(), Creator: t.GetCreator(), Made: wallClock(t.GetMadeNs()), Note: t.GetNote(), PeerAddress: t.GetPeerAddress(), Used: t.GetUsed()}
	if t.GetExpiresNs() != 0 {
		form.Expires = wallClock(t.GetExpiresNs())
	}
	return form
}

// Quota bounds what a principal uses, or what is under a prefix.
type Quota struct {
	Who      string `json:"who,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	Sessions Uint64 `json:"sessions,omitempty"`
	Claims   Uint64 `json:"claims,omitempty"`
	Bytes    Uint64 `json:"bytes,omitempty"`
	Requests Uint64 `json:"requests,omitempty"`
}

// QuotaOf returns the form of a quota.
func QuotaOf(q *api.Quota) Quota {
	return Quota{q.GetWho(), q.GetPrefix(), Uint64(q.GetSessions()), Uint64(q.GetClaims()), Uint64(q.GetBytes()), Uint64(q.GetRequests())}
}

// AccessChanged is the answer to a change of the access rules.
type AccessChanged struct {
	Revision Uint64 `json:"revision"`
	// Denied is the number of present holds that the rules would not grant.
	Denied Uint64       `json:"denied"`
	Holds  []DeniedHold `json:"denied_holds"`
}

// AccessChangedOf returns the form of the answer to a change.
func AccessChangedOf(a *api.AccessResponse) AccessChanged {
	return AccessChanged{Uint64(a.GetRevision()), Uint64(a.GetDenied()), each(a.GetDeniedHolds(), DeniedHoldOf)}
}

// DeniedHold is a present hold that the rules would not grant.
type DeniedHold struct {
	Class   string    `json:"class"`
	Name    string    `json:"name"`
	Fence   Uint64    `json:"fence"`
	Owner   string    `json:"owner,omitempty"`
	Session SessionID `json:"session_id"`
}

// DeniedHoldOf returns the form of a hold.
func DeniedHoldOf(h *api.DeniedHold) DeniedHold {
	class := "lock"
	if h.GetClass() == api.Class_CLASS_ELECTION {
		class = "election"
	}
	return DeniedHold{class, h.GetName(), Uint64(h.GetFence()), h.GetOwner(), h.GetSession()}
}

// Verdict says whether the rules allow somebody something.
type Verdict struct {
	Allowed bool     `json:"allowed"`
	Why     string   `json:"why"`
	Roles   []string `json:"roles"`
}

// VerdictOf returns the form of a verdict.
func VerdictOf(a *api.AccessResponse) Verdict {
	return Verdict{a.GetAllowed(), a.GetWhy(), texts(a.GetRoles())}
}

// WhoAmI is the caller as the servers see it.
type WhoAmI struct {
	Principal string   `json:"principal"`
	Via       string   `json:"via"`
	Remote    string   `json:"remote"`
	Roles     []string `json:"roles"`
}

// WhoAmIOf returns the form of a caller.
func WhoAmIOf(a *api.AccessResponse) WhoAmI {
	return WhoAmI{a.GetPrincipal(), a.GetVia(), a.GetRemote(), texts(a.GetRoles())}
}
