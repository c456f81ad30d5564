package check_test

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/agreement/floodset"
	"github.com/conclave-io/conclave/algorithm/agreement/generals"
	"github.com/conclave-io/conclave/algorithm/agreement/phaseking"
	"github.com/conclave-io/conclave/algorithm/agreement/signedgenerals"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// TestByzantineAgreement: with few enough traitors, the loyal processes agree, whatever
// the traitors send and whatever is proposed. With one more traitor, they do not. The
// number of states is exact.
func TestByzantineAgreement(t *testing.T) {
	two := []process.OptionValue{{Name: "m", Value: "2"}}
	some, last := []process.ID{1}, [][]process.ID{{4}}
	for _, test := range []struct {
		spec      *process.Spec
		n         int
		options   []process.OptionValue
		proposers []process.ID
		traitors  [][]process.ID
		breaks    process.Property
		states    uint64
	}{
		{generals.Spec, 3, nil, nil, check.AnyTraitors(3, 1), process.Unanimity, 340},
		{generals.Spec, 4, nil, nil, [][]process.ID{{0}}, "", 1324}, // the commander
		{generals.Spec, 4, nil, nil, [][]process.ID{{1}}, "", 719},
		{generals.Spec, 4, nil, nil, check.AnyTraitors(4, 1), "", 3481},
		{generals.Spec, 4, nil, nil, check.AnyTraitors(4, 2), process.Unanimity, 0},
		{generals.Spec, 5, nil, nil, check.AnyTraitors(5, 1), "", 35632},
		{generals.Consistency, 3, nil, nil, check.AnyTraitors(3, 1), process.VectorValidity, 0},
		{signedgenerals.Spec, 3, nil, nil, check.AnyTraitors(3, 1), "", 831},
		{signedgenerals.Spec, 4, two, nil, check.AnyTraitors(4, 2), "", 358951},
		{signedgenerals.Spec, 4, nil, nil, check.AnyTraitors(4, 2), process.ValueAgreement, 0},
		{phaseking.Spec, 5, nil, some, last, "", 138863},
		{phaseking.Spec, 4, nil, nil, [][]process.ID{{0}}, process.Unanimity, 0},
	} {
		r := searched(t, check.Config{
			Spec: test.spec, Process: process.Config{N: test.n, Options: test.options},
			Requesters: test.proposers, Traitors: test.traitors,
		})
		name := test.spec.Name + ", " + r.Config.Bounds()
		switch {
		case test.states > 0 && r.States != test.states:
			t.Errorf("%s: %d states, want %d", name, r.States, test.states)
		case test.breaks == "" && r.Verdict != check.Proved:
			t.Errorf("%s: %s: %v", name, r.Sentence(), r.Broken)
		case test.breaks != "" && (r.Broken == nil || r.Broken.Property != test.breaks):
			t.Errorf("%s: %s: %v, want a violation of %s", name, r.Sentence(), r.Broken, test.breaks)
		case test.breaks != "":
			replayed(t, r)
		}
		for _, s := range r.Sometimes {
			if test.breaks == "" && !s.Reached {
				t.Errorf("%s: %s never happens", name, s.What)
			}
		}
	}
}

// TestLoyalProcessesNeedNoTraitor: a search without traitors is one of its own, in which
// nobody lies.
func TestLoyalProcessesNeedNoTraitor(t *testing.T) {
	loyal := searched(t, check.Config{Spec: generals.Spec, Process: process.Config{N: 4}})
	if loyal.Verdict != check.Proved || loyal.States != 349 {
		t.Errorf("%s, %d states", loyal.Sentence(), loyal.States)
	}
}

// TestTooManyWays: a traitor that has too many ways to lie in one step ends the search.
func TestTooManyWays(t *testing.T) {
	r := searched(t, check.Config{Spec: generals.Spec, Process: process.Config{N: 10}, Traitors: [][]process.ID{{0}}})
	if r.Verdict != check.Bounded || r.Stopped != "ways of a step" {
		t.Errorf("%s", r.Sentence())
	}
}

func TestAnyTraitors(t *testing.T) {
	got := check.AnyTraitors(4, 2)
	want := [][]process.ID{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("sets of two of four: %v", got)
	}
	if one := check.AnyTraitors(2, 3); len(one) != 1 || len(one[0]) != 2 {
		t.Errorf("three of two: %v", one)
	}
}

func TestTraitorsAreRefused(t *testing.T) {
	for _, test := range []struct {
		spec     *process.Spec
		traitors []process.ID
		entries  int
		want     string
	}{
		{floodset.Spec, []process.ID{0}, 1, "check: floodset is not for Byzantine processes"},
		{generals.Spec, []process.ID{3}, 1, "check: traitor: rank 3: must be 0 to 2"},
		{generals.Spec, nil, 2, "check: 2 entries: in generals each process proposes once"},
	} {
		c := check.Config{Spec: test.spec, Process: process.Config{N: 3}, Traitors: [][]process.ID{test.traitors}, Entries: test.entries}
		if test.traitors == nil {
			c.Traitors = nil
		}
		if err := c.Validate(); err == nil || err.Error() != test.want {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}
