package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Caller is how the servers identify a program.
type Caller struct {
	// Principal is the name that it has proven, such as "cert:alice"; empty for an
	// anonymous caller.
	Principal string
	// Via is how it calls: "grpc", "http", or "local", through the admin socket of a server
	// or from within its process. Remote is from where.
	Via    string
	Remote string
	// Roles are those of the principal.
	Roles []string
	// Mode is that of the rules, as in Access.
	Mode string
}

// WhoAmI returns how the servers identify this program.
func (a *Admin) WhoAmI(ctx context.Context) (who Caller, err error) {
	answer, err := a.access(ctx, "whoami", &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{WhoAmI: &api.WhoAmI{}}})
	return Caller{answer.GetPrincipal(), answer.GetVia(), answer.GetRemote(), answer.GetRoles(), answer.GetMode()}, err
}

// Access is who may do what in a cluster, and how much.
type Access struct {
	// Mode is "closed" if there are rules: what no rule allows is denied. It is "unset" if
	// nobody has made rules yet, and "open" if there are to be none.
	Mode string
	// Revision grows with each change.
	Revision uint64
	// Names are which names in a client's certificate name it, the first choice first:
	// "uri", "cn", "dns".
	Names    []string
	Roles    []Role
	Bindings []Binding
	Tokens   []Token
	Quotas   []Quota
}

// Role is a set of rules with a name. The roles "admin", "operator", "viewer" and
// "metrics" are there always.
type Role struct {
	Name string
	// Rules are written as people read them: `allow read,hold on lock prefix "reports/"`,
	// `deny hold on name "reports/frozen"`, `allow status`.
	Rules []string
}

// Binding gives roles to a principal, such as "cert:alice"; to all that begin with what
// comes before a trailing *; or to "everyone", which is all who have proven who they are.
type Binding struct {
	Who   string
	Roles []string
}

// Quota bounds what each principal may have that Who stands for, as in a Binding, or what
// all together may have under a Prefix. One of both is set. 0 stands for the default of
// principals, and for no bound under a prefix.
type Quota struct {
	Who      string
	Prefix   string
	Sessions uint64
	Claims   uint64 // holds and waits
	Bytes    uint64 // of the values of elections
	// Requests are per second, at each server; 0 stands for no bound. A prefix has none.
	Requests uint64
}

// Access returns the rules of the cluster.
func (a *Admin) Access(ctx context.Context) (Access, error) {
	answer, err := a.access(ctx, "access", &api.AccessRequest{Ask: &api.AccessRequest_Show{Show: &api.ShowAccess{}}})
	if err != nil {
		return Access{}, err
	}
	rules := Access{
		Mode: answer.GetMode(), Revision: answer.GetRevision(), Names: answer.GetNames().GetNames(),
		Roles: []Role{}, Bindings: []Binding{}, Tokens: []Token{}, Quotas: []Quota{},
	}
	for _, r := range answer.GetRoleList() {
		rules.Roles = append(rules.Roles, Role{r.GetName(), append([]string{}, r.GetRules()...)})
	}
	for _, b := range answer.GetBindings() {
		rules.Bindings = append(rules.Bindings, Binding{b.GetWho(), b.GetRoles()})
	}
	for _, t := range answer.GetTokens() {
		rules.Tokens = append(rules.Tokens, tokenOf(t))
	}
	for _, q := range answer.GetQuotas() {
		rules.Quotas = append(rules.Quotas, Quota{q.GetWho(), q.GetPrefix(), q.GetSessions(), q.GetClaims(), q.GetBytes(), q.GetRequests()})
	}
	return rules, nil
}

// AccessCheck is a question: may a principal use a verb?
type AccessCheck struct {
	// Verb is what, as rules name it: "hold", "read", "members".
	Verb string
	// Name is the lock that a verb on names is about, or, with Election, the election.
	Name     string
	Election bool
	// Principal is who; empty for this program itself.
	Principal string
}

// Verdict is the answer to an AccessCheck.
type Verdict struct {
	Allowed bool
	// Why is one line that names the rule which decides.
	Why string
	// Roles are those of the principal.
	Roles []string
}

// CheckAccess returns whether the rules allow a verb to a principal, and which rule decides.
func (a *Admin) CheckAccess(ctx context.Context, check AccessCheck) (Verdict, error) {
	ask := &api.CheckAccess{Verb: check.Verb, Name: check.Name, Principal: check.Principal}
	if check.Election {
		ask.Class = api.Class_CLASS_ELECTION
	}
	answer, err := a.access(ctx, "check access", &api.AccessRequest{Ask: &api.AccessRequest_Check{Check: ask}})
	return Verdict{answer.GetAllowed(), answer.GetWhy(), answer.GetRoles()}, err
}

// AccessChange changes the rules: all its edits are made, or none.
type AccessChange struct {
	Edits []AccessEdit
	// Expected is the revision for which the edits were made; 0 stands for any. If the
	// rules have another one, the change fails with ErrConflict.
	Expected uint64
	// Force makes the change even if it leaves nobody who may change the rules, other than
	// through the admin socket of a server.
	Force bool
	// EndSessions ends the sessions of programs that have proven no name, if the edits turn
	// rules on: their holders are asked to leave. Without it such a change fails while there
	// are any.
	EndSessions bool
	// DryRun makes no change, and only returns the result that it would have.
	DryRun bool
}

// AccessChanged is the result of an AccessChange.
type AccessChanged struct {
	// Revision is that of the rules now.
	Revision uint64
	// Denied is how many holds there are that the new rules would not grant. Their holders
	// keep them: to end them, revoke them. Locks that an algorithm guards are not counted.
	Denied uint64
	// Holds are the first 1,000 of them that this program may read.
	Holds []DeniedHold
}

// DeniedHold is a hold that the rules would not grant now.
type DeniedHold struct {
	Name     string
	Election bool
	Fence    uint64
	Owner    string
	// Session is the public id of its session.
	Session string
}

// ChangeAccess changes the rules of the cluster. Once it has returned, they decide
// whatever is asked for. A change that is sent twice is made once.
func (a *Admin) ChangeAccess(ctx context.Context, change AccessChange) (AccessChanged, error) {
	sent := &api.AccessChange{Expected: change.Expected, Force: change.Force, DryRun: change.DryRun, EndSessions: change.EndSessions}
	for _, e := range change.Edits {
		sent.Edits = append(sent.Edits, e.edit)
	}
	answer, err := a.access(ctx, "change access", &api.AccessRequest{Ask: &api.AccessRequest_Change{Change: sent}})
	changed := AccessChanged{Revision: answer.GetRevision(), Denied: answer.GetDenied()}
	for _, h := range answer.GetDeniedHolds() {
		changed.Holds = append(changed.Holds, DeniedHold{h.GetName(), h.GetClass() == api.Class_CLASS_ELECTION, h.GetFence(), h.GetOwner(), client.PublicID(h.GetSession())})
	}
	return changed, err
}

// access puts a question about the rules to the servers.
func (a *Admin) access(ctx context.Context, op string, req *api.AccessRequest) (answer *api.AccessResponse, err error) {
	var conflict error
	err = a.ask(ctx, op, func(ctx context.Context, server api.ConclaveClient) (err error) {
		answer, err = server.Access(ctx, req)
		if status.Code(err) == codes.Aborted {
			conflict = fmt.Errorf("conclave: %s: %w", op, &conflictError{status.Convert(err).Message()})
			return nil
		}
		return err
	})
	return answer, cmp.Or(err, conflict)
}

// ErrConflict means that the rules of the cluster have changed since they were read.
var ErrConflict = errors.New("the rules have changed meanwhile")

// conflictError is ErrConflict with the words of the server.
type conflictError struct{ text string }

func (e *conflictError) Error() string { return e.text }

func (e *conflictError) Unwrap() error { return ErrConflict }

// Token is the record of a token. The token itself is nowhere but with its holder.
type Token struct {
	// ID is public: 16 characters.
	ID string
	// Name is the NAME in the principal "token:NAME" that the token proves.
	Name string
	// PeerAddress is, of a join token, where it lets a server join. It has no name. Used says
	// that a server has joined by it.
	PeerAddress string
	Used        bool

	Creator string
	Made    time.Time
	// Expires is when it ends, by the clock of the leader; zero: never.
	Expires time.Time
	Note    string
}

func tokenOf(t *api.Token) Token {
	token := Token{ID: t.GetId(), Name: t.GetName(), Creator: t.GetCreator(), Made: time.Unix(0, t.GetMadeNs()).UTC(), Note: t.GetNote(), PeerAddress: t.GetPeerAddress(), Used: t.GetUsed()}
	if t.GetExpiresNs() != 0 {
		token.Expires = time.Unix(0, t.GetExpiresNs()).UTC()
	}
	return token
}

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
// time stands for never. It returns the token, for conclave.Config.Token of its holder, the edit that
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
