package access

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"slices"
	"strings"
)

const (
	tokenIDLength = 16 // characters, of base32
	maxNote       = 256
)

// Token is the record of a token. Only the holder of the token has its secret.
type Token struct {
	ID   string            // public: 16 characters of a to z and 2 to 7
	Hash [sha256.Size]byte // of the secret
	Name string            // the principal that it proves is token:NAME
	// Peer is the peer address at which it lets one server join, instead of a name. UID is the
	// UID of the server that has joined with it, or 0.
	Peer string
	UID  uint64
	// Creator is the principal that created it. The entry that creates the token sets it.
	Creator string
	// Made and Expires are times of the leader's wall clock, in ns since 1970. Expires is 0 if
	// the token does not expire.
	Made, Expires int64
	Note          string
}

// Principal returns the principal that the token proves.
func (t *Token) Principal() string {
	if t.Joins() {
		return Joining + ":" + t.ID
	}
	return "token:" + t.Name
}

// Digest returns the hash of a secret in the record of its token. The secret is random, so
// no slow hash is needed.
func Digest(secret []byte) [sha256.Size]byte { return sha256.Sum256(secret) }

// Proves reports whether a secret is that of the token. It takes the same time for all
// secrets of the same length.
func (t *Token) Proves(secret []byte) bool {
	sum := Digest(secret)
	return subtle.ConstantTimeCompare(sum[:], t.Hash[:]) == 1
}

// Expired reports whether the token has expired at a time of the wall clock.
func (t *Token) Expired(wall int64) bool { return t.Expires != 0 && wall >= t.Expires }

// Ending says when the last token of a principal expires.
type Ending struct {
	Principal string
	At        int64 // wall clock, ns since 1970
}

// MaxEndings bounds the principals that servers report about.
const MaxEndings = 100

// meantToEnd is the life of a token, in ns, below which it is meant to expire, such as that of a guest.
const meantToEnd = 14 * 24 * 3600e9

// Endings returns when principals lose their last token, of the principals for which that is first. A
// token with a later one for the same principal is replaced already. Left out are tokens for servers
// that join, and tokens that live for less than two weeks.
func (s *State) Endings(most int) []Ending {
	last := make(map[string]*Token)
	tokens := s.Tokens()
	for i := range tokens {
		t := &tokens[i]
		before := last[t.Name]
		if !t.Joins() && (before == nil || before.Expires != 0 && (t.Expires == 0 || t.Expires > before.Expires)) {
			last[t.Name] = t
		}
	}
	var endings []Ending
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if t := last[name]; t.Expires != 0 && t.Expires-t.Made >= meantToEnd {
			endings = append(endings, Ending{t.Principal(), t.Expires})
		}
	}
	slices.SortStableFunc(endings, func(a, b Ending) int { return cmp.Compare(a.At, b.At) })
	return endings[:min(len(endings), most)]
}

func validateTokenID(id string) error {
	if len(id) != tokenIDLength || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return invalid("token", id, "must be an id of 16 characters, a to z and 2 to 7")
	}
	return nil
}

func (t *Token) validate() error {
	if err := validateTokenID(t.ID); err != nil {
		return err
	}
	if t.Hash == ([sha256.Size]byte{}) {
		return invalid("token", t.ID, "must have the SHA-256 of its secret")
	}
	if err := t.validateProven(); err != nil {
		return err
	}
	if t.Creator != "" {
		if err := validateText("creator", t.Creator, MaxPrincipal); err != nil {
			return err
		}
	}
	if t.Expires < 0 || t.Expires != 0 && t.Expires < t.Made {
		return invalid("token", t.ID, "must not expire before it is made")
	}
	if t.Note == "" {
		return nil
	}
	return validateText("note", t.Note, maxNote)
}

// validateProven looks at what the token proves.
func (t *Token) validateProven() error {
	if t.Joins() {
		return t.validateJoin()
	}
	if err := validateText("token name", t.Name, maxRoleName); err != nil {
		return err
	}
	return ValidatePrincipal(t.Principal())
}
