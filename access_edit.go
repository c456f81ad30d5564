package conclave

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"strings"
	"time"

	"github.com/conclave-io/conclave/service/api"
)

// AccessEdit changes one thing of the rules. What it puts takes the place of what has the
// same name.
type AccessEdit struct{ edit *api.AccessEdit }

// PutRole makes a role, or replaces its rules.
func PutRole(r Role) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_PutRole{PutRole: &api.Role{Name: r.Name, Rules: r.Rules}}}}
}

// DropRole removes a role, which no binding may name any more.
func DropRole(name string) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_DropRole{DropRole: name}}}
}

// PutBinding makes a binding, or replaces its roles, which must be sorted.
func PutBinding(b Binding) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_PutBinding{PutBinding: &api.Binding{Who: b.Who, Roles: b.Roles}}}}
}

// DropBinding removes the binding of a principal, or of a pattern.
func DropBinding(who string) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_DropBinding{DropBinding: who}}}
}

// PutQuota makes a quota, or replaces its amounts.
func PutQuota(q Quota) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_PutQuota{PutQuota: quotaOf(q)}}}
}

// DropQuota removes the quota of a principal or of a prefix.
func DropQuota(q Quota) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_DropQuota{DropQuota: quotaOf(q)}}}
}

func quotaOf(q Quota) *api.Quota {
	return &api.Quota{Who: q.Who, Prefix: q.Prefix, Sessions: q.Sessions, Claims: q.Claims, Bytes: q.Bytes, Requests: q.Requests}
}

// SetMode turns rules on ("closed"), or off ("open").
func SetMode(mode string) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_Mode{Mode: mode}}}
}

// SetNames says which names of a client's certificate count, as Access.Names.
func SetNames(names ...string) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_Names{Names: &api.CertificateNames{Names: names}}}}
}

// The parts of a token: cvt1_ID_SECRET.
const (
	tokenPrefix = "cvt1_"
	tokenID     = 10 // bytes, of which base32 makes 16 characters
	tokenSecret = 32 // bytes
)

// NewToken draws a token that proves the principal "token:NAME" until it expires; a zero
// time stands for never. It returns the token, for Config.Token of its holder, the edit that
// makes it valid, and its id. Only a hash of the token is in the edit, and on the servers.
func NewToken(name string, expires time.Time, note string) (token string, put AccessEdit, id string) {
	return newToken(&api.Token{Name: name, Note: note}, expires)
}

// NewJoinToken draws a token that lets one server join at a peer address until it expires, and
// nothing else. It is for the file that serve --join-token-file names.
func NewJoinToken(peerAddress string, expires time.Time) (token string, put AccessEdit) {
	token, put, _ = newToken(&api.Token{PeerAddress: peerAddress}, expires)
	return token, put
}

func newToken(record *api.Token, expires time.Time) (token string, put AccessEdit, id string) {
	drawn := make([]byte, tokenID+tokenSecret)
	rand.Read(drawn) // it never fails
	secret := drawn[tokenID:]
	id = strings.ToLower(base32.StdEncoding.EncodeToString(drawn[:tokenID]))
	hash := sha256.Sum256(secret)
	record.Id, record.Hash = id, hash[:]
	if !expires.IsZero() {
		record.ExpiresNs = expires.UnixNano()
	}
	put = AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_PutToken{PutToken: record}}}
	return tokenPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(secret), put, id
}

// ExpireToken changes when a token ends that Access has returned. The change needs
// Expected, the revision of that Access.
func ExpireToken(t Token, expires time.Time) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_PutToken{PutToken: &api.Token{Id: t.ID, Name: t.Name, Note: t.Note, ExpiresNs: expires.UnixNano()}}}}
}

// DropToken revokes a token by its id. Streams that it let in end at once.
func DropToken(id string) AccessEdit {
	return AccessEdit{&api.AccessEdit{Edit: &api.AccessEdit_DropToken{DropToken: id}}}
}
