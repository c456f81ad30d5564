package alike

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

const (
	composed   = "caf\u00e9"
	decomposed = "cafe\u0301"
)

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

func TestGroups(t *testing.T) {
	got := Groups([]string{"b", decomposed, "cafe", composed, "b", "a"})
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

func TestNotNFC(t *testing.T) {
	long := strings.Repeat("long/", 30)
	for text, want := range map[string]string{
		composed: "", "plain": "", "": "",
		decomposed:       `name: "cafe\u0301": is not in the Unicode form NFC; use "café", or see conclave settings`,
		"\u212b":         `name: "\u212b": is not in the Unicode form NFC; use "Å", or see conclave settings`,
		long + "e\u0301": `name: ..."/long/long/long/e\u0301": is not in the Unicode form NFC; use ..."/long/long/long/é", or see conclave settings`,
		"e\u0301" + long: `name: "e\u0301` + long[:61] + `"...: is not in the Unicode form NFC; use "é` + long[:62] + `"..., or see conclave settings`,
	} {
		if got := NotNFC("name", text); got != want {
			t.Errorf("%+q:\n%s\nwant\n%s", text, got, want)
		}
	}
}
