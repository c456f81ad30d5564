package attack

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/test/mutation"
	"github.com/conclave-io/conclave/internal/test/vopr/mutants"
)

// innerDefence is code that prevents a mistake which no attack of this package can show. Tests of
// other packages fail without that code.
type innerDefence struct {
	name string
	// tests are folders and functions, as in attack.elsewhere.
	tests []string
	// without describes the behaviour of the program without it.
	without string
	edits   []mutation.Edit
}

var innerDefences = []innerDefence{
	{
		"every-call-is-in-the-table", []string{"internal/service/admission TestEveryCallHasANeed"}, "a gRPC method is missing in the table of what callers need",
		without("internal/service/admission/methods.go", "\t\"Backup\":        {access.OnCluster(access.Backup), \"backup\"},\n", ""),
	},
	{
		"thawed-homes-ask-the-rules", []string{"internal/service/host TestRulesWhileHandedOver"}, "a home that no other server took over continues with waits that the rules have come to deny",
		without("internal/service/host/home.go", "h.frozen, h.early = false, nil\n\th.obey()\n", "h.frozen, h.early = false, nil\n"),
	},
	{
		"whole-hashes-are-compared", []string{"internal/service/access TestTokens"}, "the first 8 bytes of the hash of a token's secret are compared",
		without("internal/service/access/token.go", "ConstantTimeCompare(sum[:], t.Hash[:])", "ConstantTimeCompare(sum[:8], t.Hash[:8])"),
	},
	{
		"entries-have-the-format-of-the-level", []string{"internal/service/replica TestEntriesHaveTheFormatOfTheLevel"}, "entries have the format of the newest level that the leader reads",
		without("internal/service/replica/apply.go", "batch.Append(nil, level)", "batch.Append(nil, r.cfg.Levels.Max)"),
	},
	{
		"snapshots-have-the-format-of-the-level", []string{"internal/service/registry TestGoldenRegistry"}, "snapshots have the format of the newest level that the server reads",
		without("internal/service/registry/snapshot.go", "version.At(v.level).Snapshot", "version.At(version.Max).Snapshot"),
	},
	{
		"commands-need-their-level", []string{"internal/service/registry TestNoRules"}, "a change of the rules takes effect below the level of rules",
		[]mutation.Edit{
			{File: "internal/service/registry/access.go", Old: "fx *Effects) Result {\n\tvar refusal Result\n", New: "fx *Effects) Result {\n\tvar refusal Result\n\tif r.rules == nil {\n\t\tr.rules = access.New(r.Mode())\n\t}\n"},
			{File: "internal/service/registry/access.go", Old: "case !hasAccess(r.level):\n\t\treturn Result", New: "case !hasAccess(r.level) && c.Op != OpAccess:\n\t\treturn Result"},
		},
	},
	{
		"a-lower-level-needs-a-snapshot", []string{"internal/service/replica TestNothingIsWrittenBehindALowerLevel"}, "a server makes no snapshot when the level is lowered",
		without("internal/service/replica/apply.go", "after != before {", "after > before {"),
	},
	{
		"segments-are-never-cut", []string{"internal/service/store TestTruncatedTail"}, "a server accepts a segment of the log that was cut after it was written",
		without("internal/service/store/scan.go", "case int64(len(s.b)) < wal.SegmentSizeBytes:", "case len(s.b) == 0:"),
	},
	{
		"reached-is-what-was-committed", []string{"internal/service/store TestReachedIsCommitted"}, "the file reached has the index of the last entry, committed or not",
		[]mutation.Edit{
			{File: "internal/service/store/store.go", Old: "\tkept    []position        // of", New: "\tlast    uint64\n\tkept    []position        // of"},
			{File: "internal/service/store/store.go", Old: "\t// The wal package skips the fsync", New: "\tif n := len(entries); n > 0 {\n\t\ts.last = entries[n-1].GetIndex()\n\t}\n\t// The wal package skips the fsync"},
			{File: "internal/service/store/store.go", Old: "mark{s.hard.GetCommit(), s.hard.GetTerm()}", New: "mark{max(s.last, s.hard.GetCommit()), s.hard.GetTerm()}"},
			{File: "internal/service/store/reached.go", Old: "mark{s.hard.GetCommit(), s.hard.GetTerm()}", New: "mark{max(s.last, s.hard.GetCommit()), s.hard.GetTerm()}"},
		},
	},
}

// mistakes are the mistakes in access, audit, levels and the log that tests must find. The names
// are those of defences, and of package mutants.
var mistakes = []struct {
	what  string
	names []string
}{
	{"the id of a session depends on its secret alone, without the principal", []string{"ids-have-a-principal"}},
	{"the public id of a session is its secret", []string{"ids-are-no-secrets"}},
	{"the client says who owns a session", []string{"nobody-owns"}},
	{"the rules are checked before a request is in the log, and not when it is applied", []string{"rules-at-the-door-only"}},
	{"a home grants a lock under an algorithm that the rules deny: at the request, to who waited, to whom it took over, or after a handover that failed", []string{"home-asks-no-rules", "home-waits-outlive-rights", "home-takes-over-denied-waits", "thawed-homes-ask-the-rules"}},
	{"an allow wins over a deny at the same name", []string{"allow-after-deny"}},
	{"a prefix is compared without its last byte", []string{"prefix-one-byte-short"}},
	{"of a rule on a prefix and one on the exact name of the same length, the wrong one wins", []string{"exact-before-prefixes"}},
	{"a stale list has names that its caller may not read", []string{"stale-lists-are-filtered"}},
	{"a method is missing in the table of what callers need", []string{"every-call-is-in-the-table", "calls-without-a-need-are-refused"}},
	{"a server believes a client that says on the client port, as servers do, who has called", []string{"clients-vouch-for-nobody"}},
	{"a server does not check for which host the certificate of another server is", []string{"servers-are-known-by-host"}},
	{"an expired token is accepted", []string{"tokens-expire"}},
	{"a part of a token is compared", []string{"whole-hashes-are-compared"}},
	{"the end of a session drops its holds at once", []string{"an-end-is-told-first", "end-drops-at-once"}},
	{"the quota of a session that expired or was closed stays used", []string{"quota-not-given-back"}},
	{"a quota is compared with the usage before the entry, so several requests in one entry exceed it together", []string{"quotas-count-each-request"}},
	{"all requests wait in one queue", []string{"one-lane"}},
	{"the record of an act is in a later entry than the act", []string{"records-come-with-the-act"}},
	{"refusals displace the records of acts", []string{"refusals-have-a-ring-of-their-own"}},
	{"with --audit-required, a server that cannot write its audit log refuses renewals", []string{"renewals-need-no-record"}},
	{"after a reload, an authority that was removed is still trusted", []string{"authorities-are-read-again", "removed-authorities-are-cut"}},
	{"the level is raised although a learner does not read it", []string{"raise-without-learners"}},
	{"entries or snapshots have the newest format that the program knows", []string{"entries-have-the-format-of-the-level", "snapshots-have-the-format-of-the-level"}},
	{"a command of a newer level takes effect below that level", []string{"commands-need-their-level"}},
	{"the level is lowered and no snapshot is made", []string{"a-lower-level-needs-a-snapshot"}},
	{"a segment of the log that was cut is accepted", []string{"segments-are-never-cut"}},
	{"the file reached has the last index of the log, which need not be committed", []string{"reached-is-what-was-committed"}},
	{"a command exits with 124, as for a lock that is held, when no server answers", []string{"no-answer-is-no-refusal"}},
}

// mistaken returns the table of mistakes.
func mistaken(t *testing.T) []byte {
	var out bytes.Buffer
	out.WriteString("| mistake | opened by | found by |\n|---|---|---|\n")
	for _, m := range mistakes {
		var names, finders []string
		for _, name := range m.names {
			names = append(names, "`"+name+"`")
			found := finder(name)
			if found == "" {
				t.Errorf("there is no defence or mutant %s", name)
			}
			if !slices.Contains(finders, found) {
				finders = append(finders, found)
			}
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", cell(m.what), strings.Join(names, ", "), strings.Join(finders, "; "))
	}
	return out.Bytes()
}

// finder returns what finds the program without a defence, or a mutant.
func finder(name string) string {
	for _, d := range defences {
		if d.name == name {
			numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(d.attacks), " ", ", "), "[]")
			if len(d.attacks) > 1 {
				return "attacks " + numbers
			}
			return "attack " + numbers
		}
	}
	for _, d := range innerDefences {
		if d.name == name {
			return "`" + strings.Join(d.tests, "`, `") + "`"
		}
	}
	if slices.ContainsFunc(mutants.All, func(m mutants.Mutant) bool { return m.Name == name }) {
		return "a recorded plan of `internal/test/vopr`"
	}
	return ""
}

// TestInnerDefences checks that the tests of the inner defences exist.
func TestInnerDefences(t *testing.T) {
	for _, d := range innerDefences {
		if len(d.tests) == 0 {
			t.Errorf("%s: no test finds the program without it", d.name)
		}
		for _, test := range d.tests {
			if folder, name, _ := strings.Cut(test, " "); !declares(t, filepath.Join(root, folder), name) {
				t.Errorf("%s: %s: no such test", d.name, test)
			}
		}
	}
}
