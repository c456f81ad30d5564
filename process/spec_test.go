package process_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
)

func TestValidate(t *testing.T) {
	spec := &process.Spec{Name: "vote", Options: []process.Option{
		{Name: "mode", Default: "a", Values: []string{"a", "b"}}, {Name: "m", Default: "2", Min: 1, Max: 9}}}
	set := func(name, value string) []process.OptionValue {
		return []process.OptionValue{{Name: name, Value: value}}
	}
	cases := map[string]*process.Config{
		"":                         {N: 3, Options: set("m", "9")},
		"N: 0: must be 1 to":       {},
		"2 labels for 3 processes": {N: 3, Labels: []process.Label{1, 2}},
		"label 7 is given to two":  {N: 2, Labels: []process.Label{7, 7}},
		"delay -1 ns":              {N: 1, Delay: -1},
		`mode of vote: "c": must be one of [a b]`:       {N: 1, Options: set("mode", "c")},
		`m of vote: "10": must be a number from 1 to 9`: {N: 1, Options: set("m", "10")},
		`has no option "k"; it has mode, m`:             {N: 1, Options: set("k", "1")},
		"coordinator: rank 3: must be 0 to 2":           {N: 3, Topology: process.Topology{Coordinator: 3}},
		"does not visit all 3":                          {N: 3, Topology: process.Topology{Successor: []process.ID{1, 0, 2}}},
		"ring of 2 for 3":                               {N: 3, Topology: process.Topology{Successor: []process.ID{1, 0}}},
		"ring: rank 5":                                  {N: 2, Topology: process.Topology{Successor: []process.ID{5, 0}}},
		"tree has 2 roots":                              {N: 2, Topology: process.Topology{Parent: []process.ID{-1, -1}}},
		"does not lead to a root":                       {N: 3, Topology: process.Topology{Parent: []process.ID{-1, 2, 1}}},
		"tree of 1 for 2":                               {N: 2, Topology: process.Topology{Parent: []process.ID{-1}}},
		"1 voting sets for 2":                           {N: 2, Topology: process.Topology{Quorums: [][]process.ID{{0}}}},
		"voting set of rank 0: rank 9":                  {N: 1, Topology: process.Topology{Quorums: [][]process.ID{{9}}}},
	}
	for want, c := range cases {
		err := spec.Validate(c)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error is %v, it should say %q", err, want)
		}
	}
	needy := &process.Spec{Name: "tree", Needs: process.Needs{Topology: process.Tree}}
	if err := needy.Validate(&process.Config{N: 2}); err == nil {
		t.Error("an algorithm that needs a tree accepts none")
	}
}

// TestCheck: what an algorithm itself demands counts alone and in a stack.
func TestCheck(t *testing.T) {
	odd := &process.Spec{Name: "odd", Check: func(c *process.Config) error {
		if c.N%2 == 0 {
			return fmt.Errorf("odd: N: %d: must be odd", c.N)
		}
		return nil
	}}
	stack := &process.Spec{Name: "stack", Layers: []*process.Spec{{Name: "low"}, odd}}
	for _, spec := range []*process.Spec{odd, stack} {
		if err := spec.Validate(&process.Config{N: 3}); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
		if err := spec.Validate(&process.Config{N: 4}); err == nil || err.Error() != "odd: N: 4: must be odd" {
			t.Errorf("%s: error is %v, it should be that of the check", spec.Name, err)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	c := &process.Config{N: 3}
	if c.D() != process.Millisecond || c.E() != 10*process.Millisecond {
		t.Errorf("D is %d and E is %d, want 1 ms and 10 ms", c.D(), c.E())
	}
	if c.Label(2) != 3 || c.Rank(3) != 2 || c.Rank(4) != process.None || c.Rank(0) != process.None {
		t.Error("without labels a process is labelled by its rank + 1")
	}
	c = &process.Config{N: 2, Labels: []process.Label{50, 7}, Delay: 5, Section: 6,
		Options: []process.OptionValue{{Name: "m", Value: "4"}}}
	if c.Label(1) != 7 || c.Rank(7) != 1 || c.Rank(8) != process.None || c.D() != 5 || c.E() != 6 {
		t.Error("what is set does not count")
	}
	if c.IntOption("m", 2) != 4 || c.IntOption("k", 2) != 2 || c.Option("x", "y") != "y" {
		t.Error("options are not read, or their defaults are not")
	}
}

func TestTopologies(t *testing.T) {
	spec := &process.Spec{Name: "any"}
	shapes := map[string]func(int) []process.ID{"binary": process.BinaryTree, "star": process.Star, "line": process.Line}
	for name, shape := range shapes {
		for n := 1; n < 40; n++ {
			c := &process.Config{N: n, Topology: process.Topology{Parent: shape(n)}}
			if err := spec.Validate(c); err != nil {
				t.Errorf("%s of %d: %v", name, n, err)
			}
		}
	}
	if want := []process.ID{-1, 0, 0, 1, 1, 2}; !slices.Equal(process.BinaryTree(6), want) {
		t.Errorf("binary tree is %v, want %v", process.BinaryTree(6), want)
	}
	ring := process.Topology{Successor: process.Ring(0, 2, 1)}
	if ring.Next(0, 3) != 2 || ring.Next(1, 3) != 0 {
		t.Errorf("ring 0, 2, 1 has successors %v", ring.Successor)
	}
	if (&process.Topology{}).Next(2, 3) != 0 {
		t.Error("without an order the ring goes by rank")
	}
}

func TestSet(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 130} {
		s := process.NewSet(n)
		if !s.Empty() {
			t.Errorf("a new set of %d is not empty", n)
		}
		self := process.ID(n / 2)
		s.FillOthers(n, self)
		if s.Len() != n-1 || s.Has(self) {
			t.Errorf("the others of %d are %d, self among them: %v", n, s.Len(), s.Has(self))
		}
		s.Add(self)
		members := slices.Collect(s.All())
		if len(members) != n || !slices.IsSorted(members) || members[n-1] != process.ID(n-1) {
			t.Errorf("members of a full set of %d are %v", n, members)
		}
		for range s.All() {
			break // a loop may end early
		}
		s.Clear()
		if !s.Empty() {
			t.Errorf("a cleared set of %d is not empty", n)
		}
	}
}

func TestNumbers(t *testing.T) {
	term := process.MakeTerm(7, 3)
	if term.Round() != 7 || term.Leader() != 3 || process.Term(0).Leader() != process.None {
		t.Errorf("term has round %d and leader %d, want 7 and 3", term.Round(), term.Leader())
	}
	if process.MakeTerm(7, 4) <= term || process.MakeTerm(8, 0) <= process.MakeTerm(7, 900) {
		t.Error("terms are not ordered by round, then by leader")
	}
	f := process.Fence(0).Next(0).Next(0)
	if f.String() != "2" || f.Next(2).String() != "2.3" || f.Next(2).Next(1).String() != "2.4" {
		t.Errorf("fences are %s, %s, %s; want 2, 2.3, 2.4", f, f.Next(2), f.Next(2).Next(1))
	}
	a, b := process.Stamp{Clock: 3, ID: 1}, process.Stamp{Clock: 3, ID: 2}
	if !a.Less(b) || b.Less(a) || a.Less(a) || !b.Less(process.Stamp{Clock: 4}) {
		t.Error("stamps are not ordered by clock, then by rank")
	}
	timer := process.Timer(3).For(0)
	if timer.Name() != 3 || timer.Peer() != 0 || process.Timer(3).Peer() != process.None || timer == process.Timer(3) {
		t.Error("a timer about a process is not what it was made of")
	}
}

func TestNamesAreComplete(t *testing.T) {
	for k := process.Start; k <= process.Granted; k++ {
		if process.KindByName(k.String()) != k {
			t.Errorf("event kind %d has the name %q of another", k, k)
		}
	}
	for k := process.EffectSend; k <= process.EffectCancel; k++ {
		if process.EffectKindByName(k.String()) != k {
			t.Errorf("effect kind %d has the name %q of another", k, k)
		}
	}
	names := []string{
		process.Composed.String(), process.Recovery.String(), process.Slowness.String(), process.Convergence.String(),
		process.Steady.String(), process.MessageCount.String(), process.FieldData.String(),
	}
	want := []string{"composed", "recovery", "slowness", "convergence", "steady", "messages", "data"}
	if !slices.Equal(names, want) {
		t.Errorf("the last names are %v, want %v: a name is missing somewhere", names, want)
	}
	if process.KindByName("dance") != 0 || process.EffectKindByName("dance") != 0 || process.Kind(99).String() != "kind(99)" {
		t.Error("an unknown name or kind is taken for a known one")
	}
}
