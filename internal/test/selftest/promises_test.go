package selftest

import "testing"

// guardedNames are the promises and rules of names under an algorithm.
var guardedNames = Promises{
	Lists: []string{"algorithm/view", "internal/service/host"},
	Uses: []string{
		"algorithm/view", "algorithm/view/...", "internal/kit/near", "internal/service/...", "internal/test/vopr", "internal/test/vopr/...",
	},
}

func TestPromises(t *testing.T) { report(t, CheckPromises(load(t), guardedNames)) }

func TestPromisesAreChecked(t *testing.T) {
	tree := small(t, map[string]string{
		"low/doc.go":     "// Package low.\n//\n//\tS1  a seat ends.\n//\tV2b guards stay (S1).\npackage low\n",
		"high/doc.go":    "// Package high.\n//\n//\tS1  a seat begins.\n//\tH2  a client has a session (S3).\npackage high\n",
		"high/a.go":      "package high\n\n// run is V2b and H2, of SHA-256, at base.S9: \"S9\".\nfunc run() {} // S4: ends\n",
		"other/doc.go":   "// Package other has X1.\npackage other\n",
		"high/b_test.go": "package high\n\n// tested (G7, S1).\nvar x int\n",
	})
	expect(t, CheckPromises(tree, Promises{Lists: []string{"low", "high"}, Uses: []string{"low", "high"}}), []string{
		"low/doc.go:3:1: S1 is listed in high too",
		"high/a.go:4:15: S4 is in no list of promises (low, high)",
		"high/b_test.go:3:1: G7 is in no list of promises (low, high)",
		"high/doc.go:4:1: S3 is in no list of promises (low, high)",
	})
}
