package access

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/admin"
)

// The command apply reads the output of show without losing any rule, whatever characters
// the names have.
func TestRulesAreReadAsTheyAreWritten(t *testing.T) {
	rules := admin.Access{
		Mode: "closed", Revision: 7, Names: []string{"dns", "uri"},
		Roles: []admin.Role{
			{Name: "batch", Rules: []string{`allow read,hold on prefix "reports/"`, `deny hold on lock name "a \"b\" \\c"`, `allow status,members`, `allow revoke on election prefix ""`, `deny read on prefix ""`}},
			{Name: "empty", Rules: []string{}},
		},
		Bindings: []admin.Binding{{Who: "cert:batch-*", Roles: []string{"batch", "viewer"}}, {Who: "everyone", Roles: []string{"empty"}}},
		Quotas:   []admin.Quota{{Prefix: "reports/", Claims: 5, Bytes: 1 << 40}, {Who: "everyone", Sessions: 3}},
	}
	var file bytes.Buffer
	if err := writeRules(&file, rules); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.toml")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	read, _, err := readRules(path, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, file.String())
	}
	read.Mode, read.Revision = rules.Mode, rules.Revision
	if diff := cmp.Diff(rules, read); diff != "" {
		t.Errorf("written (-) and read (+):\n%s\n%s", diff, file.String())
	}
	if d, e := difference(rules, read), replacing(rules, read); !slices.Equal(d, []string{"no difference"}) || len(e) > 0 {
		t.Errorf("the difference is %q, %d edits", d, len(e))
	}
}

// The difference shows what is removed and what is added, and has one edit for each item.
func TestDifferenceOfRules(t *testing.T) {
	before := admin.Access{
		Names:    []string{"uri", "cn"},
		Roles:    []admin.Role{{Name: "a", Rules: []string{"allow status", "allow members"}}, {Name: "b", Rules: []string{"allow audit"}}},
		Bindings: []admin.Binding{{Who: "cert:x", Roles: []string{"a", "b"}}, {Who: "cert:y", Roles: []string{"b"}}},
		Quotas:   []admin.Quota{{Who: "cert:x", Claims: 5}},
	}
	after := admin.Access{
		Names:    []string{"cn"},
		Roles:    []admin.Role{{Name: "a", Rules: []string{"allow status"}}, {Name: "c", Rules: []string{"allow audit"}}},
		Bindings: []admin.Binding{{Who: "cert:x", Roles: []string{"a"}}, {Who: "cert:z", Roles: []string{"c"}}},
		Quotas:   []admin.Quota{{Who: "cert:x", Claims: 6}, {Prefix: "p/", Bytes: 1}},
	}
	want := []string{
		`- bind "cert:x": b`, `- bind "cert:y": b`, `+ bind "cert:z": c`, `+ names: cn`, `- names: uri, cn`, `- quota of cert:x: 5 claims`, `+ quota of cert:x: 6 claims`,
		`+ quota of prefix "p/": 1 bytes`, `- role "a": allow members`, `- role "b"`, `- role "b": allow audit`, `+ role "c"`, `+ role "c": allow audit`,
	}
	if diff := cmp.Diff(want, difference(before, after)); diff != "" {
		t.Errorf("wanted (-) and said (+):\n%s", diff)
	}
	if edits := replacing(before, after); len(edits) != 9 {
		t.Errorf("%d edits: %v; want 9", len(edits), edits)
	}
}
