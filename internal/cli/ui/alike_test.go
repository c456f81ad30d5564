package ui

import (
	"slices"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

const (
	composed   = "caf\u00e9"
	decomposed = "cafe\u0301"
)

func TestTextsThatLookAlikeAreShownDifferently(t *testing.T) {
	for text, want := range map[string]string{
		composed: composed, decomposed: `"cafe\u0301"`, "": "-", "a b": "a b", "ключ": "ключ",
		"ключ-" + decomposed + "-é": `"ключ-cafe\u0301-é"`,
		"\u1112\u1161\u11ab":        `"\u1112\u1161\u11ab"`, // 한, decomposed
		"\u00c5\u212b":              `"Å\u212b"`,            // the sign of the unit ångström
		"a\nb":                      `"a\nb"`, "\x1b[1m" + decomposed: `"\x1b[1mcafe\u0301"`,
	} {
		if got := Shown(text); got != want {
			t.Errorf("%+q is shown as %s, want %s", text, got, want)
		}
	}
}

// Two different texts are quoted differently by what one can see: also if both are composed.
func TestQuotedTellsFormsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("aeé\u0301\u0327\u0323ạåÅ\u212b\u1112\u1161\u11ab한\u200b\""))).Draw(t, "text")
		for _, other := range OtherForms(text) {
			if Quoted(text) == Quoted(other) || norm.NFC.String(Quoted(text)) == norm.NFC.String(Quoted(other)) {
				t.Fatalf("%+q and %+q are both shown as %s", text, other, Quoted(text))
			}
		}
	})
}

func TestAlike(t *testing.T) {
	got := Alike([]string{"b", decomposed, "cafe", composed, "b", "a"})
	if want := [][]string{{decomposed, composed}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%+q, want %+q", got, want)
	}
	if got := OtherForms(composed); !slices.Equal(got, []string{decomposed}) {
		t.Errorf("the other forms are %+q", got)
	}
	if got := OtherForms("plain"); got != nil {
		t.Errorf("the other forms are %+q", got)
	}
}
