package ui

import "testing"

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
