package access

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawState draws a state with few names, so that rules meet, and returns it with its
// parts.
func drawState(t *rapid.T) (*State, []Edit) {
	name := rapid.StringMatching(`[ab/]{0,4}`)
	text := func(what string) string { return name.Filter(func(s string) bool { return s != "" }).Draw(t, what) }
	var edits []Edit
	roles := []string{"r0", "r1", "r2"}
	for _, role := range roles {
		r := Role{Name: role}
		for range rapid.IntRange(0, 6).Draw(t, "rules") {
			rule := Rule{Deny: rapid.Bool().Draw(t, "deny"), Class: Any, Verbs: Verbs(rapid.Uint32Range(1, uint32(everything)).Draw(t, "verbs"))}
			if rapid.Bool().Draw(t, "on a name") {
				rule.Verbs, rule.Exact, rule.Class = rule.Verbs&onNames|Of(Hold), rapid.Bool().Draw(t, "exact"), Class(rapid.IntRange(0, 2).Draw(t, "class"))
				rule.Name = text("name")
			}
			r.Rules = append(r.Rules, rule)
		}
		edits = append(edits, Edit{Kind: PutRole, Role: r})
	}
	for _, who := range []string{"cert:a", "cert:ab", "cert:a*", "cert:*", "token:x", Everyone} {
		if set := rapid.SliceOfDistinct(rapid.SampledFrom(append(roles, "viewer")), rapid.ID).Draw(t, "bound"); len(set) > 0 {
			slices.Sort(set)
			edits = append(edits, Edit{Kind: PutBinding, Binding: Binding{who, set}})
		}
	}
	s, err := New(Closed).Apply(&Change{Force: true, Edits: edits})
	if err != nil {
		t.Fatal(err)
	}
	return s, edits
}

// naive decides by checking every rule. For each prefix of the name, the shortest first,
// it applies the rules that allow and then those that deny. Rules for the whole name come
// last.
func naive(edits []Edit, principal string, verb Verb, class Class, name string) bool {
	if principal == "" {
		return false
	}
	bound := map[string]bool{}
	for _, e := range edits {
		who := e.Binding.Who
		if e.Kind == PutBinding && (who == principal || who == Everyone || strings.HasSuffix(who, "*") && strings.HasPrefix(principal, who[:len(who)-1])) {
			for _, role := range e.Binding.Roles {
				bound[role] = true
			}
		}
	}
	var rules []Rule
	for _, role := range fixedRoles {
		if bound[role.Name] {
			rules = append(rules, role.Rules...)
		}
	}
	for _, e := range edits {
		if e.Kind == PutRole && bound[e.Role.Name] {
			rules = append(rules, e.Role.Rules...)
		}
	}
	if !verb.OnNames() {
		class, name = Lock, ""
	}
	allowed := false
	for _, exact := range []bool{false, true} {
		for n := range len(name) + 1 {
			for _, deny := range []bool{false, true} {
				for _, r := range rules {
					if r.Verbs>>verb&1 == 1 && r.Exact == exact && r.Deny == deny && r.Name == name[:n] && (!exact || n == len(name)) && (r.Class == Any || r.Class == class) {
						allowed = !deny
					}
				}
			}
		}
	}
	return allowed
}

// TestDecisions: the trees decide like a check of all rules, the explanation agrees, and
// so does a state that was encoded and decoded.
func TestDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, edits := drawState(t)
		read := reread(t, s)
		for range 40 {
			principal := rapid.SampledFrom([]string{"", "cert:a", "cert:ab", "cert:abc", "cert:b", "token:x", "k8s:z"}).Draw(t, "who")
			verb := Verb(rapid.IntRange(0, int(verbs)-1).Draw(t, "verb"))
			class := Class(rapid.IntRange(0, 1).Draw(t, "class"))
			name := rapid.StringMatching(`[ab/]{1,5}`).Draw(t, "name")
			want := naive(edits, principal, verb, class, name)
			if got, why := s.Decide(principal, verb, class, name); got != want || !got && why.Allowed {
				t.Fatalf("%v for %v %v %q of %q: %v; %v", got, verb, class, name, principal, why, s.AllRoles())
			}
			if why := s.Explain(principal, verb, class, name); why.Allowed != want {
				t.Fatalf("wrong explanation: %v, %+v", why, why)
			}
			if read.Allows(principal, verb, class, name) != want {
				t.Fatal("what was read decides otherwise")
			}
			if !verb.OnNames() {
				continue
			}
			prefix := name[:rapid.IntRange(0, len(name)).Draw(t, "prefix")]
			tried := []string{prefix, prefix + "~"} // no rule has a ~
			for _, e := range edits {
				for _, rule := range e.Role.Rules {
					if strings.HasPrefix(rule.Name, prefix) {
						tried = append(tried, rule.Name, rule.Name+"~")
					}
				}
			}
			somewhere := slices.ContainsFunc(tried, func(name string) bool { return s.Allows(principal, verb, class, name) })
			if got := s.Rights(principal).Somewhere(verb, class, prefix); got != somewhere {
				t.Fatalf("%v somewhere for %v %v below %q of %q", got, verb, class, prefix, principal)
			}
		}
	})
}

// TestSharedRights: a state that was reached by many changes, and shares parts with
// earlier states, decides like one that was made at once.
func TestSharedRights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := drawState(t)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			_, edits := drawState(t)
			var err error
			if s, err = s.Apply(&Change{Force: true, Edits: edits}); err != nil {
				t.Fatal(err)
			}
		}
		fresh := reread(t, s)
		for _, principal := range []string{"cert:a", "cert:ab", "cert:abc", "token:x", "k8s:z"} {
			for _, name := range []string{"", "a", "aa", "ab", "a/", "b/a", "/"} {
				for verb := range verbs {
					if s.Allows(principal, verb, Lock, name) != fresh.Allows(principal, verb, Lock, name) {
						t.Fatalf("%v of %q on %q: %v", verb, principal, name, s.Explain(principal, verb, Lock, name))
					}
				}
			}
		}
	})
}

func TestChanges(t *testing.T) {
	role := Edit{Kind: PutRole, Role: Role{"batch", []Rule{{Verbs: Of(Hold), Class: Any, Name: "reports/"}}}}
	bind := Edit{Kind: PutBinding, Binding: Binding{"cert:bob", []string{"batch"}}}
	admin := Edit{Kind: PutBinding, Binding: Binding{"cert:alice", []string{"admin"}}}
	closed := Edit{Kind: SetMode, Mode: Closed}
	start := New(Unset)
	if !start.Allows("", Hold, Lock, "x") || start.Most("cert:bob") != (Amount{}) {
		t.Error("without rules something is denied")
	}
	s := must(t, start, Change{Edits: []Edit{role, bind, admin, closed}, Expected: 1})
	if s.Revision() != 2 || !s.Allows("cert:bob", Hold, Lock, "reports/a") || s.Allows("cert:bob", Hold, Lock, "a") || start.Mode() != Unset {
		t.Errorf("revision %d", s.Revision())
	}
	if again := must(t, s, Change{Edits: []Edit{role, closed}, Expected: 1}); again != s {
		t.Error("a change that was made already is made again")
	}
	refused(t, s, &ConflictError{}, Change{Edits: []Edit{{Kind: DropBinding, Binding: Binding{Who: "cert:bob"}}}, Expected: 1})
	refused(t, s, &LockoutError{}, Change{Edits: []Edit{{Kind: DropBinding, Binding: Binding{Who: "cert:alice"}}}})
	refused(t, start, &LockoutError{}, Change{Edits: []Edit{closed}})
	refused(t, s, &InvalidError{}, Change{Edits: []Edit{{Kind: DropRole, Role: Role{Name: "batch"}}}})
	refused(t, s, &InvalidError{}, Change{})
	many := Change{}
	for i := range 17 {
		rules := slices.Repeat([]Rule{{Verbs: Of(Read), Class: Any}}, 1000)
		many.Edits = append(many.Edits, Edit{Kind: PutRole, Role: Role{"many" + string(rune('a'+i)), rules}})
	}
	refused(t, s, &LimitError{}, many)
	forced := must(t, s, Change{Force: true, Edits: []Edit{{Kind: DropBinding, Binding: Binding{Who: "cert:alice"}}}})
	if forced.Allows("cert:alice", Access, Lock, "") || !forced.Allows("local:1/0", Access, Lock, "") {
		t.Error("after a forced change")
	}
}

// TestAdministrators: who may be locked out by which binding.
func TestAdministrators(t *testing.T) {
	closed, deny := Edit{Kind: SetMode, Mode: Closed}, Edit{Kind: PutRole, Role: Role{"no", []Rule{{Deny: true, Verbs: Of(Access), Class: Any}}}}
	bind := func(who string, roles ...string) Edit {
		return Edit{Kind: PutBinding, Binding: Binding{who, roles}}
	}
	for _, who := range []string{"cert:alice", "cert:*", Everyone} {
		must(t, New(Unset), Change{Edits: []Edit{closed, bind(who, "admin")}})
		refused(t, New(Unset), &LockoutError{}, Change{Edits: []Edit{closed, deny, bind(who, "admin", "no")}})
	}
	refused(t, New(Unset), &LockoutError{}, Change{Edits: []Edit{closed, deny, bind("cert:alice", "admin"), bind(Everyone, "no")}})
}

func must(t *testing.T, s *State, c Change) *State {
	t.Helper()
	next, err := s.Apply(&c)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func refused[E error](t *testing.T, s *State, want E, c Change) {
	t.Helper()
	before := s.Append(nil)
	if _, err := s.Apply(&c); !errors.As(err, &want) {
		t.Errorf("%v: %v, want a %T", &c, err, want)
	}
	if !slices.Equal(before, s.Append(nil)) {
		t.Error("a refused change has changed the state")
	}
}

// TestQuotas: the most specific quota of a principal counts, and all of the prefixes that
// a name is in.
func TestQuotas(t *testing.T) {
	quota := func(who, prefix string, claims uint64) Edit {
		return Edit{Kind: PutQuota, Quota: Quota{who, prefix, Amount{Claims: claims}}}
	}
	s := must(t, New(Closed), Change{Force: true, Edits: []Edit{
		quota("cert:bob", "", 1), quota("cert:*", "", 2), quota("cert:b*", "", 3), quota("", "a/", 4), quota("", "a/b/", 5), quota("", "a/b", 6),
	}})
	for who, want := range map[string]uint64{"cert:bob": 1, "cert:bo": 3, "cert:a": 2, "token:x": DefaultAmount.Claims, "local:1/0": 0} {
		if got := s.Most(who); got.Claims != want || want != 0 && got.Sessions != DefaultAmount.Sessions {
			t.Errorf("%s: %+v, want %d claims", who, got, want)
		}
	}
	for name, want := range map[string][]uint64{"a": nil, "a/": {4}, "a/x": {4}, "a/bc": {4, 6}, "a/b/c": {4, 6, 5}, "b": nil} {
		var got []uint64
		for _, q := range s.Prefixes(name) {
			got = append(got, q.Most.Claims)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is in %v, want %v", name, got, want)
		}
	}
	err := s.Most("cert:bob").More("cert:bob", Amount{Claims: 1, Sessions: 5000}, Amount{Claims: 1})
	if err == nil || err.Error() != "cert:bob has 1 of 1 claims: release some, or have the quota raised" {
		t.Error(err)
	}
	if err := s.Most("cert:bob").More("cert:bob", Amount{Claims: 9, Sessions: 1}, Amount{Sessions: 1}); err != nil {
		t.Errorf("what does not grow is refused: %v", err)
	}
}

// A join token lets one server join, at its address, until it expires, and has no roles.
func TestJoinTokens(t *testing.T) {
	token := Token{ID: "abcdefghijklmn27", Hash: Digest([]byte("x")), Peer: "a:1", Made: 5, Expires: 10}
	other := Token{ID: "bbcdefghijklmn27", Hash: Digest([]byte("y")), Name: "ci", Expires: 10}
	s := must(t, New(Closed), Change{Force: true, Edits: []Edit{
		{Kind: PutToken, Token: token}, {Kind: PutToken, Token: other}, {Kind: PutBinding, Binding: Binding{Who: Everyone, Roles: []string{"admin"}}},
	}})
	who := token.Principal()
	if who != "join:abcdefghijklmn27" || len(s.Roles(who)) != 0 || s.Allows(who, Read, Lock, "x") {
		t.Errorf("%s has the roles %v", who, s.Roles(who))
	}
	used, err := s.Join(who, "a:1", 7, 9)
	if err != nil || used.Revision() != s.Revision()+1 {
		t.Fatal(used.Revision(), err)
	}
	reread(t, used)
	if again, err := used.Join(who, "a:1", 7, 9); err != nil || again != used {
		t.Errorf("the same server asks again: %v", err)
	}
	for want, refused := range map[string]func() (*State, error){
		"used by another server":             func() (*State, error) { return used.Join(who, "a:1", 8, 9) },
		"join at a:1, not at a:2":            func() (*State, error) { return s.Join(who, "a:2", 7, 9) },
		"is expired":                         func() (*State, error) { return s.Join(who, "a:1", 7, 10) },
		"the join token bbcd...: is unknown": func() (*State, error) { return s.Join("join:"+other.ID, "a:1", 7, 9) },
		"is unknown or revoked":              func() (*State, error) { return s.Join("join:", "a:1", 7, 9) },
	} {
		if next, err := refused(); next != nil || !errors.As(err, new(*JoinError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if kept := used.Trim(9, "a:2"); kept != used {
		t.Error("a token goes that is of use")
	}
	for _, trimmed := range []*State{used.Trim(10, ""), used.Trim(9, "a:1")} {
		if left := trimmed.Tokens(); len(left) != 1 || left[0].ID != other.ID {
			t.Errorf("%v are left", left)
		}
		reread(t, trimmed)
	}
	both := func(t Token) *Change { return &Change{Edits: []Edit{{Kind: PutToken, Token: t}}} }
	if s.Verb(both(token)) != Members || s.Verb(both(other)) != Access || s.Verb(both(Token{ID: other.ID, Peer: "a:1"})) != Access {
		t.Error("a change needs another verb")
	}
	for _, wrong := range []Token{
		{ID: token.ID, Hash: token.Hash, Peer: "a:1"}, {ID: token.ID, Hash: token.Hash, Peer: "a:1", Name: "ci", Expires: 9}, {ID: token.ID, Hash: token.Hash, Peer: "a\n", Expires: 9},
	} {
		if err := both(wrong).Validate(); err == nil {
			t.Errorf("%+v passes", wrong)
		}
	}
}

func TestTokens(t *testing.T) {
	token := Token{ID: "abcdefghijklmn27", Name: "ci", Made: 5, Expires: 10}
	token.Hash = Digest([]byte("secret"))
	s := must(t, New(Closed), Change{Force: true, Edits: []Edit{{Kind: PutToken, Token: token}}})
	got, found := s.Token(token.ID)
	if !found || !got.Proves([]byte("secret")) || got.Proves([]byte("secreT")) || got.Proves(nil) || got.Principal() != "token:ci" {
		t.Errorf("%+v, %v", got, found)
	}
	if got.Expired(9) || !got.Expired(10) {
		t.Error("the token does not end when it should")
	}
	// The whole hash counts: a part of it would prove the token by many secrets.
	for i := range got.Hash {
		other := got
		other.Hash[i] ^= 1
		if other.Proves([]byte("secret")) {
			t.Errorf("byte %d of the hash does not count", i)
		}
	}
}
