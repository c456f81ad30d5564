package access

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

func reread(t interface{ Fatal(...any) }, s *State) *State {
	b := s.Append(nil)
	r := wire.NewReader(b)
	read := ReadState(r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read.Append(nil), b) || len(b) != s.Size() || read.Size() != s.Size() {
		t.Fatal("a state changes when it is written and read")
	}
	return read
}

// TestScripts: the decisions, and their explanations. A line with a colon after its first
// word creates a role or a binding. Any other line asks for a decision.
func TestScripts(t *testing.T) {
	const script = `
role batch: allow read,hold on prefix reports/; deny hold on prefix reports/frozen/; allow hold on name reports/frozen/ok; allow hold on election prefix lead/
role ops: allow status,backup; allow revoke on prefix "" 
bind cert:bob: batch
bind cert:carol: batch,ops
bind cert:*: viewer
bind token:ci: metrics,viewer,operator,ops

cert:bob hold lock reports/a = cert:bob may hold "reports/a": role batch allows hold on prefix "reports/"
cert:bob hold lock reports/frozen/a = cert:bob may not hold "reports/frozen/a": role batch denies hold on prefix "reports/frozen/"
cert:bob hold lock reports/frozen/ok = cert:bob may hold "reports/frozen/ok": role batch allows hold on name "reports/frozen/ok"
cert:bob hold lock reports/frozen/ok2 = cert:bob may not hold "reports/frozen/ok2": role batch denies hold on prefix "reports/frozen/"
cert:bob hold lock reports = cert:bob may not hold "reports": none of its roles (batch, viewer) allows hold there; see conclave access check hold reports
cert:bob hold lock lead/a = cert:bob may not hold "lead/a": none of its roles (batch, viewer) allows hold there; see conclave access check hold lead/a
cert:bob hold election lead/a = cert:bob may hold "lead/a": role batch allows hold on election prefix "lead/"
cert:bob read lock else = cert:bob may read "else": role viewer allows read on prefix ""
cert:bob backup = cert:bob may not take a backup: none of its roles (batch, viewer) allows backup; see conclave access check backup
cert:carol backup = cert:carol may take a backup: role ops allows backup
cert:carol revoke lock x = cert:carol may revoke "x": role ops allows revoke on prefix ""
token:ci access = token:ci may not change the rules: none of its roles (metrics, operator, ops, ...) allows access; see conclave access check access
k8s:x read lock x = k8s:x may not read "x": it has no role; see conclave access check read x
 read lock x = anonymous may not read "x": prove who you are by a client certificate or a token
local:1/0 access = local:1/0 may change the rules: role admin allows access
`
	s := New(Closed)
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		if question, want, asks := strings.Cut(line, " = "); asks {
			words := append(strings.Split(question, " "), "", "")
			verb, err := ParseVerb(words[1])
			class, _ := ParseClass(words[2])
			why := s.Explain(words[0], verb, class, words[3])
			if allowed, _ := s.Decide(words[0], verb, class, words[3]); err != nil || why.String() != want || allowed != why.Allowed {
				t.Errorf("%v, %v\n got %v\nwant %s", allowed, err, why, want)
			}
			continue
		}
		edit, err := parseEdit(line)
		if err != nil {
			t.Fatal(err)
		}
		if s, err = s.Apply(&Change{Edits: []Edit{edit}, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	reread(t, s)
}

func parseEdit(line string) (Edit, error) {
	kind, rest, _ := strings.Cut(line, " ")
	who, what, _ := strings.Cut(rest, ": ")
	if kind == "bind" {
		return Edit{Kind: PutBinding, Binding: Binding{who, union(strings.Split(what, ","), strings.Split(what, ","))}}, nil
	}
	role := Role{Name: who}
	for text := range strings.SplitSeq(what, "; ") {
		rule, err := ParseRule(strings.TrimSpace(text))
		if err != nil {
			return Edit{}, err
		}
		if again, err := ParseRule(rule.String()); err != nil || again != rule {
			return Edit{}, fmt.Errorf("%v is read as %v: %w", rule, again, err)
		}
		role.Rules = append(role.Rules, rule)
	}
	return Edit{Kind: PutRole, Role: role}, nil
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("x", MaxPrincipal)
	for _, who := range []string{"", "bob", ":bob", "cert:", "cert:b*", "cert:\x00", "cert:\xff", "cert:a\u0085b", "cert:" + long} {
		if err := ValidatePrincipal(who); !errors.As(err, new(*InvalidError)) {
			t.Errorf("the principal %q passes: %v", who, err)
		}
	}
	for _, who := range []string{"cert:bob", "k8s:system:serviceaccount:prod:report", "cert:spiffe://x/y", "cert:Zoë"} {
		if err := ValidatePrincipal(who); err != nil {
			t.Error(err)
		}
	}
	for _, who := range []string{"*", "ce*", ":*", "cert:*b", "cert:**", "local:1/0", "local:*", "join:*", "join:x", "everyone*"} {
		if err := validatePattern(who); err == nil {
			t.Errorf("the pattern %q passes", who)
		}
	}
	for _, text := range []string{"", "allow", "permit read", "allow raed", "allow read on", "allow read on lock", "allow read on lock name ", "allow status on prefix a", "allow read,status on lock prefix ", `allow read on prefix "a`, "allow read on queue prefix a", "allow read on name \x01"} {
		if rule, err := ParseRule(text); !errors.As(err, new(*InvalidError)) {
			t.Errorf("%q is the rule %v: %v", text, rule, err)
		}
	}
	if (Rule{Name: "reports"}).Warning() == "" || (Rule{Name: "reports/"}).Warning() != "" || (Rule{Name: "reports", Exact: true}).Warning() != "" {
		t.Error("the wrong rules bring a warning")
	}
}

// full has something of everything.
func full() []Edit {
	return []Edit{
		{Kind: PutRole, Role: Role{"batch", []Rule{{Verbs: Of(Read, Hold), Class: Lock, Name: "reports/"}, {Deny: true, Verbs: Of(Hold), Class: Any, Exact: true, Name: "reports/x"}}}},
		{Kind: PutBinding, Binding: Binding{"cert:bob", []string{"batch", "viewer"}}},
		{Kind: PutToken, Token: Token{ID: "abcdefghijklmn27", Hash: Digest([]byte("x")), Name: "ci", Creator: "cert:alice", Made: 1, Expires: 2, Note: "for tests"}},
		{Kind: PutToken, Token: Token{ID: "ybcdefghijklmn27", Hash: Digest([]byte("y")), Peer: "10.0.0.4:7500", UID: 7, Creator: "cert:alice", Made: 1, Expires: 2}},
		{Kind: PutQuota, Quota: Quota{Who: "cert:*", Most: Amount{1, 2, 3, 4}}}, {Kind: PutQuota, Quota: Quota{Prefix: "reports/", Most: Amount{0, 5, 6, 0}}},
		{Kind: SetMode, Mode: Closed}, {Kind: SetNames, Names: []string{"dns", "uri"}},
		{Kind: DropRole, Role: Role{Name: "gone"}}, {Kind: DropBinding, Binding: Binding{Who: "cert:gone"}}, {Kind: DropToken, Token: Token{ID: "zbcdefghijklmn27"}}, {Kind: DropQuota, Quota: Quota{Prefix: "gone/"}},
	}
}

// FuzzReadState: an accepted state is sound, and decoding its encoding gives the same
// state.
func FuzzReadState(f *testing.F) {
	f.Add(New(Open).Append(nil))
	s, err := New(Unset).Apply(&Change{Force: true, Edits: full()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := wire.NewReader(data)
		s := ReadState(r)
		if r.Close() != nil {
			return
		}
		if reread(t, s); s.Allows("cert:bob", Hold, Lock, "x") != s.Explain("cert:bob", Hold, Lock, "x").Allowed {
			t.Fatal("the explanation differs")
		}
	})
}

// FuzzReadChange: a change that can be decoded stays the same when it is encoded and
// decoded again, and does not make Apply panic.
func FuzzReadChange(f *testing.F) {
	f.Add((&Change{Expected: 7, Force: true, Edits: full()}).Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := wire.NewReader(data)
		c := ReadChange(r)
		if r.Close() != nil {
			return
		}
		b := c.Append(nil)
		again := ReadChange(wire.NewReader(b))
		if !bytes.Equal(again.Append(nil), b) {
			t.Fatal("a change differs when it is written and read")
		}
		if next, err := New(Open).Apply(&c); err == nil {
			reread(t, next)
		}
		_ = c.String()
	})
}

// BenchmarkAllows decides for a principal with 200 rules.
func BenchmarkAllows(b *testing.B) {
	role := Role{Name: "batch"}
	for i := range 200 {
		role.Rules = append(role.Rules, Rule{Verbs: Of(Read, Hold), Class: Any, Deny: i%5 == 0, Name: fmt.Sprintf("team-%d/reports/%d/", i%20, i)})
	}
	s, err := New(Closed).Apply(&Change{Force: true, Edits: []Edit{{Kind: PutRole, Role: role}, {Kind: PutBinding, Binding: Binding{"cert:bob", []string{"batch"}}}}})
	if err != nil {
		b.Fatal(err)
	}
	rights := s.Rights("cert:bob")
	b.Run("rights", func(b *testing.B) {
		for b.Loop() {
			if !rights.Allows(Hold, Lock, "team-7/reports/47/nightly") {
				b.Fatal("denied")
			}
		}
	})
	b.Run("principal", func(b *testing.B) {
		for b.Loop() {
			if !s.Allows("cert:bob", Hold, Lock, "team-7/reports/47/nightly") {
				b.Fatal("denied")
			}
		}
	})
}

// BenchmarkChange binds one more principal where 65,535 are bound.
func BenchmarkChange(b *testing.B) {
	s := New(Closed)
	for at := 0; at < MaxBindings-1; {
		c := Change{Force: true}
		for ; at < MaxBindings-1 && len(c.Edits) < MaxEdits; at++ {
			c.Edits = append(c.Edits, Edit{Kind: PutBinding, Binding: Binding{fmt.Sprintf("k8s:system:serviceaccount:prod:%05d", at), []string{"viewer"}}})
		}
		var err error
		if s, err = s.Apply(&c); err != nil {
			b.Fatal(err)
		}
	}
	c := Change{Force: true, Edits: []Edit{{Kind: PutBinding, Binding: Binding{"cert:bob", []string{"admin"}}}}}
	for b.Loop() {
		if _, err := s.Apply(&c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(s.Size()), "B/state")
}
