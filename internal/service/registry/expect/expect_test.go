package expect

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

// Idle never says less than replicated time does, whatever the wall clocks say, and never more than
// the longer one of the two.
func TestIdleIsTheLongerOfTwoClocks(t *testing.T) {
	const hour, day = int64(3600e9), int64(24 * 3600e9)
	set := Moment{Wall: 1000 * day, Replicated: 5 * hour}
	ended := Moment{Wall: 1000*day + 2*hour, Replicated: 7 * hour}
	for _, test := range []struct {
		what string
		last Moment
		now  Moment
		want int64
	}{
		{"never held", Moment{}, Moment{set.Wall + hour, set.Replicated + hour}, hour},
		{"held since", ended, Moment{ended.Wall + hour, ended.Replicated + hour}, hour},
		{"replicated time was lost", ended, Moment{ended.Wall + 30*hour, ended.Replicated + hour}, 30 * hour},
		{"the clock at the end of the hold was a day ahead", Moment{ended.Wall + day, ended.Replicated}, Moment{ended.Wall + 30*hour, ended.Replicated + 30*hour}, 30 * hour},
		{"it was a day behind", Moment{ended.Wall - day, ended.Replicated}, Moment{ended.Wall + hour, ended.Replicated + hour}, 25 * hour},
		{"the clock of the reader is a day behind", ended, Moment{ended.Wall + 30*hour - day, ended.Replicated + 30*hour}, 30 * hour},
		{"both clocks are before the end", ended, Moment{ended.Wall - hour, ended.Replicated - hour}, 0},
		{"a clock at its end", Moment{math.MinInt64, 7 * hour}, Moment{math.MaxInt64, 7 * hour}, math.MaxInt64},
		{"a clock at its beginning", Moment{math.MaxInt64, 7 * hour}, Moment{math.MinInt64, 8 * hour}, hour},
	} {
		r := Rule{Set: set}
		if test.last != (Moment{}) {
			r.Last = Hold{Fence: 1, Until: test.last}
		}
		if got := r.Idle(test.now); got != test.want {
			t.Errorf("%s: idle for %d, want %d", test.what, got, test.want)
		}
	}
}

func TestPeriods(t *testing.T) {
	for period, valid := range map[int64]bool{
		0: false, -1: false, math.MinInt64: false, math.MaxInt64: false, MinPeriod - 1: false, MaxPeriod + 1: false,
		MinPeriod: true, MaxPeriod: true, 26 * 3600e9: true,
	} {
		if got := Validate(period); (got == "") != valid {
			t.Errorf("the period %d: %q", period, got)
		}
	}
}

// TestRulesAreAMap: whatever is added, replaced and removed, the rules are those of a map. What
// follows from them is as if they were read, and earlier rules have not changed.
func TestRulesAreAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rules *Rules
		want := make(map[key]Rule)
		var earlier []*Rules
		var encoded [][]byte
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			k := key{rapid.Uint8Range(0, 1).Draw(t, "class"), rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")}
			switch rule := rules.Find(k.class, k.name); rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				fresh := Rule{Class: k.class, Name: k.name, Period: rapid.Int64Range(MinPeriod, MaxPeriod).Draw(t, "period"), By: "cert:ops"}
				rules, want[k] = rules.With(fresh), fresh
			case 1:
				rules = rules.Without(k.class, k.name)
				delete(want, k)
			default:
				if rule == nil {
					continue
				}
				last := Hold{Fence: 1, Since: -5, Until: Moment{rapid.Int64().Draw(t, "wall"), 4}, Owner: "cert:a", Host: "a1", Program: "p", PID: 7}
				rules = rules.Ended(rule, last)
				r := want[k]
				r.Last = last
				want[k] = r
			}
			earlier, encoded = append(earlier, rules), append(encoded, rules.Append(nil))
		}
		for i, then := range earlier {
			if !slices.Equal(then.Append(nil), encoded[i]) {
				t.Fatalf("the rules of step %d have changed since", i)
			}
		}
		for _, r := range rules.All() {
			if want[r.key()] != *r {
				t.Fatalf("the rule %+v, want %+v", *r, want[r.key()])
			}
		}
		rd := wire.NewReader(rules.Append(nil))
		read := Read(rd)
		if err := rd.Close(); err != nil {
			t.Fatal(err)
		}
		if rules.Len() != len(want) || read.Len() != len(want) || read.Size(10) != rules.Size(10) || read.Digest() != rules.Digest() {
			t.Fatalf("%d rules of %d bytes, digest %x; read %d of %d, %x; want %d", rules.Len(), rules.Size(10), rules.Digest(), read.Len(), read.Size(10), read.Digest(), len(want))
		}
		if n := len(rules.Append(nil)); rules.Len() > 0 && rules.Size(len("cert:aa1p")) < n {
			t.Fatalf("the size is %d, %d bytes are encoded", rules.Size(len("cert:aa1p")), n)
		}
	})
}

func TestDamagedRulesAreRefused(t *testing.T) {
	rule := func(name string, period int64) []byte {
		r := Rule{Name: name, Period: period}
		return r.append(nil)
	}
	for what, data := range map[string][]byte{
		"twice":        slices.Concat([]byte{2}, rule("a", MinPeriod), rule("a", MinPeriod)),
		"out of order": slices.Concat([]byte{2}, rule("b", MinPeriod), rule("a", MinPeriod)),
		"a period":     slices.Concat([]byte{1}, rule("a", 1)),
		"cut off":      {3},
	} {
		rd := wire.NewReader(data)
		Read(rd)
		if rd.Close() == nil {
			t.Errorf("%s: was read", what)
		}
	}
	var rules *Rules
	for n := range MostRules {
		rules = rules.With(Rule{Name: strings.Repeat("x", n+1), Period: MinPeriod})
	}
	rules = rules.With(Rule{Name: "z", Period: MinPeriod})
	rd := wire.NewReader(rules.Append(nil))
	Read(rd)
	if rd.Err() == nil {
		t.Errorf("%d rules were read", rules.Len())
	}
}
