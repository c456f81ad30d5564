package ui

import (
	"fmt"
	"slices"
	"strings"
)

// Statuses returns the annotation of a command with the exit statuses in rows. A row is a status,
// a space and its meaning, which may have several lines. If there is no row for 125, it is added.
func Statuses(rows ...string) map[string]string {
	if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, "125 ") }) {
		rows = append(rows, "125 conclave failed, or its arguments are invalid")
	}
	var b strings.Builder
	b.WriteString("Exit status:\n")
	for _, row := range rows {
		status, meaning, _ := strings.Cut(row, " ")
		meaning = strings.ReplaceAll(meaning, "\n", "\n"+strings.Repeat(" ", 8))
		fmt.Fprintf(&b, "  %-5s %s\n", status, meaning)
	}
	return map[string]string{"statuses": b.String()}
}
