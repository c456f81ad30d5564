package ui

import (
	"slices"
	"strconv"
	"strings"

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

// Alike returns the groups of names that look alike because they differ only in the form of their
// characters, in the order of the names.
func Alike(names []string) (groups [][]string) {
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
