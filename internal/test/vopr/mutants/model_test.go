package mutants

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// strayed are mutants whose decisions the model of the sessions does not allow. Each has the mutant
// whose plan shows it, and the objection of the model. The list includes verdicts-kept-alone, which
// is harmless, so no promise of the service shows it.
var strayed = []struct{ mutant, plan, objection string }{
	{"renewal-without-round", "renewal-without-round", "rule confirm: "},
	{"expiry-without-term", "expiry-without-term", "which is elected, passes the verdict"},
	{"verdicts-kept-alone", "expiry-without-term", "which is elected, passes the verdict"},
	{"half-a-ttl", "half-a-ttl", " ns for a session; the model has "},
	{"half-a-ttl-after-election", "half-a-ttl-after-election", " ns for a session; the model has "},
	{"silent-renewed-by-round", "silent-renewed-by-round", "rule arrive: "},
	{"silent-for-good", "silent-for-good", "shows a session as open true, silent true"},
	{"revoked-and-dropped", "revoked-and-dropped", "rule drop: "},
	{"deadline-from-the-answer", "deadline-from-the-answer", "rule receive: "},
	{"deadline-without-margin", "deadline-without-margin", "rule receive: "},
	{"emptied-and-trusted", "emptied-and-trusted", "rule elect: "},
	{"blank-counts", "blank-counts", "rule answer: "},
}

// TestMutantsLeaveTheModel builds two mutants and requires that the model does not allow their
// decisions. It does not matter whether a promise is broken. A number selects the mutants, as in
// TestMutants. With LONG set, or MUTANTS=all, it builds all.
func TestMutantsLeaveTheModel(t *testing.T) {
	size := 2
	if os.Getenv("LONG") != "" {
		size = len(strayed)
	}
	for _, i := range chosen(t, size, len(strayed)) {
		x := &strayed[i]
		t.Run(x.mutant, func(t *testing.T) {
			t.Parallel()
			m, by := mutant(t, x.mutant), mutant(t, x.plan)
			out, err := exec.Command(build(t, m), "-check=traces", "-replay", by.Plan(Recorded)).CombinedOutput()
			if first, _, _ := strings.Cut(string(out), "\n"); err == nil || !strings.HasPrefix(first, "trace: ") || !strings.Contains(first, x.objection) {
				t.Errorf("the model allows what it decides, or objects to something else than %q\n%s", x.objection, out)
			}
		})
	}
}

func mutant(t *testing.T, name string) *Mutant {
	i := slices.IndexFunc(All, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("there is no mutant %s", name)
	}
	return &All[i]
}
