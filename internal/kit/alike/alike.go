// Package alike tells texts apart that look alike, because they have the same characters in another Unicode
// form. Which form a text has depends on the tables of a release, so nothing that all servers must decide
// in the same way may depend on it.
package alike

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Quoted returns a text in quotation marks. Characters that another text could have in a different form
// (Unicode normalization) are shown by their codes, so that different texts differ: "café" is the
// composed form, and "cafe\u0301" the decomposed one.
func Quoted(text string) string {
	var b strings.Builder
	for text != "" {
		end := norm.NFC.NextBoundaryInString(text, true)
		if end <= 0 {
			end = len(text)
		}
		part := text[:end]
		quote := strconv.Quote
		if !norm.NFC.IsNormalString(part) {
			quote = strconv.QuoteToASCII
		}
		quoted := quote(part)
		b.WriteString(quoted[1 : len(quoted)-1])
		text = text[end:]
	}
	return `"` + b.String() + `"`
}

// IsNFC reports whether a text is in the normalization form C: its characters are composed.
func IsNFC(text string) bool { return norm.NFC.IsNormalString(text) }

// maxShown bounds how much of a text NotNFC quotes, in bytes.
const maxShown = 64

// NotNFC returns what is wrong with a text that must be in the form NFC, or "". It quotes the text, and the
// form that is expected, both from the first difference on if they are long.
func NotNFC(what, text string) string {
	if IsNFC(text) {
		return ""
	}
	same := norm.NFC.QuickSpanString(text)
	return fmt.Sprintf("%s: %s: is not in the Unicode form NFC; use %s, or see conclave settings", what, clipped(text, same), clipped(norm.NFC.String(text), same))
}

// clipped quotes a text, or the part of a long one that has the byte at.
func clipped(text string, at int) string {
	before, after := "", ""
	if len(text) > maxShown && at > maxShown/2 {
		from := at
		for from > 0 && (at-from < maxShown/4 || !utf8.RuneStart(text[from])) {
			from--
		}
		before, text = "...", text[from:]
	}
	if len(text) > maxShown {
		to := maxShown
		for !utf8.RuneStart(text[to]) {
			to--
		}
		after, text = "...", text[:to]
	}
	return before + Quoted(text) + after
}

// Groups returns the groups of names that look alike because they differ only in the form of their
// characters, in the order of the names.
func Groups(names []string) (groups [][]string) {
	forms := make(map[string][]string)
	var order []string
	for _, name := range names {
		form := norm.NFC.String(name)
		if len(forms[form]) == 0 {
			order = append(order, form)
		}
		if !slices.Contains(forms[form], name) {
			forms[form] = append(forms[form], name)
		}
	}
	for _, form := range order {
		if len(forms[form]) > 1 {
			groups = append(groups, forms[form])
		}
	}
	return groups
}

// OtherForms returns the composed and the decomposed form of a name, as far as they differ from it.
func OtherForms(name string) (others []string) {
	for _, form := range []norm.Form{norm.NFC, norm.NFD} {
		if other := form.String(name); other != name {
			others = append(others, other)
		}
	}
	return others
}
