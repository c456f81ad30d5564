package server

import (
	"encoding/hex"
	"math"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
)

// roleJSON, bindingJSON, tokenJSON and quotaJSON are the parts of the access rules.
type roleJSON struct {
	Name  string   `json:"name"`
	Rules []string `json:"rules"`
}

type bindingJSON struct {
	Who   string   `json:"who"`
	Roles []string `json:"roles"`
}

type tokenJSON struct {
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

type quotaJSON struct {
	Who      string    `json:"who,omitempty"`
	Prefix   string    `json:"prefix,omitempty"`
	Sessions bigNumber `json:"sessions,omitempty"`
	Claims   bigNumber `json:"claims,omitempty"`
	Bytes    bigNumber `json:"bytes,omitempty"`
	Requests bigNumber `json:"requests,omitempty"`
}

func (q *quotaJSON) message() *api.Quota {
	return &api.Quota{Who: q.Who, Prefix: q.Prefix, Sessions: uint64(q.Sessions), Claims: uint64(q.Claims), Bytes: uint64(q.Bytes), Requests: uint64(q.Requests)}
}

// getAccess serves GET /v1/access.
func (s service) getAccess(r *http.Request) (any, error) {
	show := &api.AccessRequest{Ask: &api.AccessRequest_Show{Show: &api.ShowAccess{}}}
	return answered(r, newParameters(r), s.Access, show, func(answer *api.AccessResponse) any { return rulesToJSON(answer) })
}

// rulesJSON has all access rules.
type rulesJSON struct {
	Mode     string        `json:"mode"`
	Revision bigNumber     `json:"revision"`
	Names    []string      `json:"names"`
	Roles    []roleJSON    `json:"roles"`
	Bindings []bindingJSON `json:"bindings"`
	Tokens   []tokenJSON   `json:"tokens"`
	Quotas   []quotaJSON   `json:"quotas"`
}

func rulesToJSON(answer *api.AccessResponse) rulesJSON {
	return rulesJSON{
		answer.GetMode(), bigNumber(answer.GetRevision()), answer.GetNames().GetNames(),
		listed(answer.GetRoleList(), func(r *api.Role) roleJSON { return roleJSON{r.GetName(), append([]string{}, r.GetRules()...)} }),
		listed(answer.GetBindings(), func(b *api.Binding) bindingJSON { return bindingJSON{b.GetWho(), b.GetRoles()} }),
		listed(answer.GetTokens(), tokenToJSON), listed(answer.GetQuotas(), quotaToJSON),
	}
}

func tokenToJSON(t *api.Token) tokenJSON {
	body := tokenJSON{ID: t.GetId(), Name: t.GetName(), Creator: t.GetCreator(), Made: wallClock(t.GetMadeNs()), Note: t.GetNote(), PeerAddress: t.GetPeerAddress(), Used: t.GetUsed()}
	if t.GetExpiresNs() != 0 {
		body.Expires = wallClock(t.GetExpiresNs())
	}
	return body
}

func quotaToJSON(q *api.Quota) quotaJSON {
	return quotaJSON{q.GetWho(), q.GetPrefix(), bigNumber(q.GetSessions()), bigNumber(q.GetClaims()), bigNumber(q.GetBytes()), bigNumber(q.GetRequests())}
}

// editJSON is one edit. Exactly one of its fields is set.
type editJSON struct {
	PutRole     *roleJSON    `json:"put_role"`
	DropRole    *string      `json:"drop_role"`
	PutBinding  *bindingJSON `json:"put_binding"`
	DropBinding *string      `json:"drop_binding"`
	PutToken    *tokenJSON   `json:"put_token"`
	DropToken   *string      `json:"drop_token"`
	PutQuota    *quotaJSON   `json:"put_quota"`
	DropQuota   *quotaJSON   `json:"drop_quota"`
	Mode        *string      `json:"mode"`
	Names       []string     `json:"names"`
}

// messages returns an edit for each field that is set.
func (e *editJSON) messages() (all []*api.AccessEdit, err error) {
	if e.PutRole != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_PutRole{PutRole: &api.Role{Name: e.PutRole.Name, Rules: e.PutRole.Rules}}})
	}
	if e.DropRole != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_DropRole{DropRole: *e.DropRole}})
	}
	if e.PutBinding != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_PutBinding{PutBinding: &api.Binding{Who: e.PutBinding.Who, Roles: e.PutBinding.Roles}}})
	}
	if e.DropBinding != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_DropBinding{DropBinding: *e.DropBinding}})
	}
	if e.PutToken != nil {
		token, err := e.PutToken.message()
		if err != nil {
			return nil, err
		}
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_PutToken{PutToken: token}})
	}
	if e.DropToken != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_DropToken{DropToken: *e.DropToken}})
	}
	if e.PutQuota != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_PutQuota{PutQuota: e.PutQuota.message()}})
	}
	if e.DropQuota != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_DropQuota{DropQuota: e.DropQuota.message()}})
	}
	if e.Mode != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_Mode{Mode: *e.Mode}})
	}
	if e.Names != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_Names{Names: &api.CertificateNames{Names: e.Names}}})
	}
	return all, nil
}

func (t *tokenJSON) message() (*api.Token, error) {
	hash, err := hex.DecodeString(t.Hash)
	if err != nil {
		return nil, malformed("hash: %.70q: must be the SHA-256 of the secret, in hexadecimal digits", t.Hash)
	}
	if latest := time.Unix(0, math.MaxInt64); t.Expires.After(latest) {
		return nil, malformed("expires: %v: must be before %d", t.Expires, latest.Year())
	}
	token := &api.Token{Id: t.ID, Hash: hash, Name: t.Name, Note: t.Note, PeerAddress: t.PeerAddress}
	if !t.Expires.IsZero() {
		token.ExpiresNs = t.Expires.UnixNano()
	}
	return token, nil
}

// deniedHoldJSON is a present hold that the rules would not grant.
type deniedHoldJSON struct {
	Class   string    `json:"class"`
	Name    string    `json:"name"`
	Fence   bigNumber `json:"fence"`
	Owner   string    `json:"owner,omitempty"`
	Session sessionID `json:"session_id"`
}

type accessBody struct {
	Expected    bigNumber  `json:"expected"`
	Force       bool       `json:"force"`
	EndSessions bool       `json:"end_sessions"`
	DryRun      bool       `json:"dry_run"`
	Edits       []editJSON `json:"edits"`
}

// postAccess serves POST /v1/access.
func (s service) postAccess(r *http.Request, body *accessBody) (any, error) {
	edits, err := editsOf(body.Edits)
	if err != nil {
		return nil, err
	}
	change := &api.AccessChange{Expected: uint64(body.Expected), Force: body.Force, DryRun: body.DryRun, EndSessions: body.EndSessions, Edits: edits}
	answer, err := s.Access(r.Context(), &api.AccessRequest{Ask: &api.AccessRequest_Change{Change: change}})
	if status.Code(err) == codes.Aborted {
		return nil, refused{&api.Reply{Code: api.Code_CODE_STALE, Message: api.Reason(err)}}
	}
	if err != nil {
		return nil, err
	}
	holds := listed(answer.GetDeniedHolds(), func(h *api.DeniedHold) deniedHoldJSON {
		class := "lock"
		if h.GetClass() == api.Class_CLASS_ELECTION {
			class = "election"
		}
		return deniedHoldJSON{class, h.GetName(), bigNumber(h.GetFence()), h.GetOwner(), h.GetSession()}
	})
	return struct {
		Revision bigNumber        `json:"revision"`
		Denied   bigNumber        `json:"denied"`
		Holds    []deniedHoldJSON `json:"denied_holds"`
	}{bigNumber(answer.GetRevision()), bigNumber(answer.GetDenied()), holds}, nil
}

// editsOf translates edits.
func editsOf(list []editJSON) (edits []*api.AccessEdit, err error) {
	for i := range list {
		all, err := list[i].messages()
		switch {
		case err != nil:
			return nil, err
		case len(all) != 1:
			return nil, malformed("edits: number %d has %d fields that say what to do: must have one", i+1, len(all))
		}
		edits = append(edits, all...)
	}
	return edits, nil
}

// verdictJSON says whether the rules allow somebody something.
type verdictJSON struct {
	Allowed bool     `json:"allowed"`
	Why     string   `json:"why"`
	Roles   []string `json:"roles"`
}

// getCheck serves GET /v1/access/check.
func (s service) getCheck(r *http.Request) (any, error) {
	p := newParameters(r)
	check := &api.CheckAccess{Verb: p.text("verb"), Name: p.text("lock"), Principal: p.text("principal")}
	if p.given("election") {
		check.Class, check.Name = api.Class_CLASS_ELECTION, p.text("election")
	}
	if p.given("lock") && p.given("election") {
		p.fail("lock, election: cannot be combined; set one of them")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if check.GetPrincipal() != "" {
		who, err := callerOf(r.Context())
		if err == nil {
			err = s.permit(r.Context(), who, needs(access.AccessRead))
		}
		if err != nil {
			return nil, err
		}
	}
	answer, err := s.Access(r.Context(), &api.AccessRequest{Ask: &api.AccessRequest_Check{Check: check}})
	if err != nil {
		return nil, err
	}
	return verdictJSON{answer.GetAllowed(), answer.GetWhy(), append([]string{}, answer.GetRoles()...)}, nil
}
