package access

import (
	"fmt"
	"strings"
)

// Joining is the source of principals that have proven a join token. They have no role,
// whatever the bindings say: all that they may do is to have one server taken in.
const Joining = "join"

// maxPeer bounds the address in a join token, in bytes.
const maxPeer = 1024

// Joins reports whether the token lets a server join, and proves no name.
func (t Token) Joins() bool { return t.Peer != "" }

func (t *Token) validateJoin() error {
	switch {
	case t.Name != "":
		return invalid("token", t.ID, "must have a name or a peer address, not both")
	case t.Expires == 0:
		return invalid("token", t.ID, "a join token must expire")
	}
	return validateText("peer address", t.Peer, maxPeer)
}

// JoinError says why a join token does not let a server join.
type JoinError struct{ ID, Why string }

func (e *JoinError) Error() string { return fmt.Sprintf("the join token %.4s...: %s", e.ID, e.Why) }

// Join returns the state after a principal that proved itself by a join token had a server
// taken in at a peer address, at a wall clock. The token is used up: it serves that server
// only, by its uid, whose request may come again. The error is a *JoinError.
func (s *State) Join(principal, peer string, uid uint64, wall int64) (*State, error) {
	_, id, _ := strings.Cut(principal, ":")
	t, found := s.Token(id)
	refuse := func(why string) (*State, error) { return nil, &JoinError{id, why} }
	switch {
	case !found || !t.Joins():
		return refuse("is unknown or revoked")
	case t.Expired(wall):
		return refuse("is expired")
	case t.Peer != peer:
		return refuse(fmt.Sprintf("lets a server join at %s, not at %s", head(t.Peer), head(peer)))
	case t.UID != 0 && t.UID != uid:
		return refuse("was used by another server; make one with conclave member add")
	}
	t.UID = uid
	next := s.withTokens(Edit{Kind: PutToken, Token: t})
	if next == nil {
		return refuse("the rules have no room for its use; remove some")
	}
	return next, nil
}

// Trim returns the state without the join tokens that have expired at a wall clock, and
// without those for a peer address that no longer expects a server, or "".
func (s *State) Trim(wall int64, peer string) *State {
	if s == nil {
		return s
	}
	var drop []Edit
	for i := range s.tokens {
		if t := &s.tokens[i]; t.Joins() && (t.Expired(wall) || t.Peer == peer) {
			drop = append(drop, Edit{Kind: DropToken, Token: Token{ID: t.ID}})
		}
	}
	if len(drop) == 0 {
		return s
	}
	return s.withTokens(drop...)
}

// withTokens returns the state with other tokens, on which no right depends, or nil if it
// would be too large.
func (s *State) withTokens(edits ...Edit) *State {
	next := s.edited(edits)
	if next.same(s) {
		return s
	}
	next.revision++
	if next.check() != nil {
		return nil
	}
	return next
}

// Verb returns which verb a change needs: members if all that it does is to make join
// tokens that are new or replace others.
func (s *State) Verb(c *Change) Verb {
	for i := range c.Edits {
		e := &c.Edits[i]
		before, found := s.Token(e.Token.ID)
		if e.Kind != PutToken || !e.Token.Joins() || found && !before.Joins() {
			return Access
		}
	}
	return Members
}
