package rest

import (
	"encoding/hex"
	"math"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/access"
)

func quotaMessage(q *jsonform.Quota) *api.Quota {
	return &api.Quota{Who: q.Who, Prefix: q.Prefix, Sessions: uint64(q.Sessions), Claims: uint64(q.Claims), Bytes: uint64(q.Bytes), Requests: uint64(q.Requests)}
}

// getAccess serves GET /v1/access.
func (h *Handler) getAccess(r *http.Request) (any, error) {
	show := &api.AccessRequest{Ask: &api.AccessRequest_Show{Show: &api.ShowAccess{}}}
	return answered(r, newParameters(r), h.server.Access, show, jsonform.RulesOf)
}

// getWhoAmI serves GET /v1/access/whoami.
func (h *Handler) getWhoAmI(r *http.Request) (any, error) {
	who := &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{WhoAmI: &api.WhoAmI{}}}
	return answered(r, newParameters(r), h.server.Access, who, jsonform.WhoAmIOf)
}

// edit is one edit. Exactly one of its fields is set.
type edit struct {
	PutRole     *jsonform.Role    `json:"put_role"`
	DropRole    *string           `json:"drop_role"`
	PutBinding  *jsonform.Binding `json:"put_binding"`
	DropBinding *string           `json:"drop_binding"`
	PutToken    *jsonform.Token   `json:"put_token"`
	DropToken   *string           `json:"drop_token"`
	PutQuota    *jsonform.Quota   `json:"put_quota"`
	DropQuota   *jsonform.Quota   `json:"drop_quota"`
	Mode        *string           `json:"mode"`
	Names       []string          `json:"names"`
}

// messages returns an edit for each field that is set.
func (e *edit) messages() (all []*api.AccessEdit, err error) {
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
		token, err := tokenMessage(e.PutToken)
		if err != nil {
			return nil, err
		}
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_PutToken{PutToken: token}})
	}
	if e.DropToken != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_DropToken{DropToken: *e.DropToken}})
	}
	if e.PutQuota != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_PutQuota{PutQuota: quotaMessage(e.PutQuota)}})
	}
	if e.DropQuota != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_DropQuota{DropQuota: quotaMessage(e.DropQuota)}})
	}
	if e.Mode != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_Mode{Mode: *e.Mode}})
	}
	if e.Names != nil {
		all = append(all, &api.AccessEdit{Edit: &api.AccessEdit_Names{Names: &api.CertificateNames{Names: e.Names}}})
	}
	return all, nil
}

func tokenMessage(t *jsonform.Token) (*api.Token, error) {
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

type accessBody struct {
	Expected    jsonform.Uint64 `json:"expected"`
	Force       bool            `json:"force"`
	EndSessions bool            `json:"end_sessions"`
	DryRun      bool            `json:"dry_run"`
	Edits       []edit          `json:"edits"`
}

// postAccess serves POST /v1/access.
func (h *Handler) postAccess(r *http.Request, body *accessBody) (any, error) {
	edits, err := editsOf(body.Edits)
	if err != nil {
		return nil, err
	}
	change := &api.AccessChange{Expected: uint64(body.Expected), Force: body.Force, DryRun: body.DryRun, EndSessions: body.EndSessions, Edits: edits}
	answer, err := h.server.Access(r.Context(), &api.AccessRequest{Ask: &api.AccessRequest_Change{Change: change}})
	if status.Code(err) == codes.Aborted {
		return nil, refused{&api.Reply{Code: api.Code_CODE_STALE, Message: api.Reason(err)}}
	}
	if err != nil {
		return nil, err
	}
	return jsonform.AccessChangedOf(answer), nil
}

// editsOf translates edits.
func editsOf(list []edit) (edits []*api.AccessEdit, err error) {
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

// getCheck serves GET /v1/access/check.
func (h *Handler) getCheck(r *http.Request) (any, error) {
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
		if err := h.server.Permit(r.Context(), access.OnCluster(access.AccessRead)); err != nil {
			return nil, err
		}
	}
	answer, err := h.server.Access(r.Context(), &api.AccessRequest{Ask: &api.AccessRequest_Check{Check: check}})
	if err != nil {
		return nil, err
	}
	return jsonform.VerdictOf(answer), nil
}
