package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/internal/kit/spelling"
)

// Error says what is wrong in a file, and on which line.
type Error struct {
	File string
	Line int
	Text string
}

// Error returns one line that begins with the file and the line number.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

// decoder reads the nodes of one file. It keeps the first error; what is read after it
// is not used.
type decoder struct {
	file string
	err  *Error
}

func (d *decoder) complain(n *yaml.Node, format string, args ...any) {
	d.complainAt(n.Line, format, args...)
}

func (d *decoder) complainAt(line int, format string, args ...any) {
	if d.err == nil {
		d.err = &Error{File: d.file, Line: max(1, line), Text: fmt.Sprintf(format, args...)}
	}
}

// maxSize is the longest file, in bytes.
const maxSize = 1 << 20

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document returns the top node of a file.
func (d *decoder) document(text []byte) *yaml.Node {
	if len(text) > maxSize {
		d.complainAt(1, "the file has %d bytes: must have at most %d", len(text), maxSize)
		return nil
	}
	reader := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	switch err := reader.Decode(&doc); {
	case errors.Is(err, io.EOF):
		d.complainAt(1, "the file is empty: must at least name an algorithm")
		return nil
	case err != nil:
		d.complainYAML(err)
		return nil
	}
	if err := reader.Decode(&next); !errors.Is(err, io.EOF) {
		d.complainAt(next.Line, "the file has more than one document: must have only one")
		return nil
	}
	return doc.Content[0]
}

func (d *decoder) complainYAML(err error) {
	text := err.Error()
	match := yamlLine.FindStringSubmatch(text)
	line := 1
	if len(match) > 0 {
		text = text[len(match[0]):]
		line, _ = strconv.Atoi(match[1])
	}
	text, _, _ = strings.Cut(text, "\n")
	d.complainAt(line, "invalid YAML: %s", text)
}

// field is a key of a mapping, and how its value is read.
type field struct {
	name string
	read func(n *yaml.Node)
}

// mapping reads a mapping in the order of the fields, so that a field may build
// on those above it. It returns the names of the keys that are present.
func (d *decoder) mapping(n *yaml.Node, what string, fields ...field) {
	values := d.pairs(n, what, func(key string) string {
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		if slices.Contains(names, key) {
			return ""
		}
		return fmt.Sprintf("%s has no key %q%s", what, key, Near(key, names))
	})
	for _, f := range fields {
		if value := find(values, f.name); value != nil && d.err == nil {
			f.read(value)
		}
	}
}

type pair struct{ key, value *yaml.Node }

func find(pairs []pair, name string) *yaml.Node {
	for _, p := range pairs {
		if p.key.Value == name {
			return p.value
		}
	}
	return nil
}

// pairs returns the contents of a mapping. The function refuse says what is wrong with
// a key, or returns nothing.
func (d *decoder) pairs(n *yaml.Node, what string, refuse func(key string) string) []pair {
	if n.Kind != yaml.MappingNode {
		d.complain(n, "%s: %s: must be a mapping of keys to values", what, kind(n))
		return nil
	}
	pairs := make([]pair, 0, len(n.Content)/2)
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			d.complain(key, "a key of %s: %s: must be a word", what, kind(key))
			return nil
		}
		if line, twice := seen[key.Value]; twice {
			d.complain(key, "%s has %q twice, first on line %d", what, key.Value, line)
			return nil
		}
		seen[key.Value] = key.Line
		if wrong := refuse(key.Value); wrong != "" {
			d.complain(key, "%s", wrong)
			return nil
		}
		pairs = append(pairs, pair{key, n.Content[i+1]})
	}
	return pairs
}

// maxItems bounds every list of a file.
const maxItems = 100_000

// items returns the elements of a list.
func (d *decoder) items(n *yaml.Node, what string) []*yaml.Node {
	switch {
	case n.Kind != yaml.SequenceNode:
		d.complain(n, "%s: %s: must be a list", what, kind(n))
		return nil
	case len(n.Content) > maxItems:
		d.complain(n, "%s has %d elements: must have at most %d", what, len(n.Content), maxItems)
		return nil
	}
	return n.Content
}

// kind describes a node.
func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!null":
		return "empty"
	}
	return strconv.Quote(shorten(n.Value))
}

// shorten keeps errors about long values on one screen.
func shorten(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "..."
	}
	return text
}

// text returns a scalar as it is written.
func (d *decoder) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.complain(n, "%s: %s: must be one word or number", what, kind(n))
		return ""
	}
	return n.Value
}

// number returns a whole number from lo to hi.
func (d *decoder) number(n *yaml.Node, what string, lo, hi int) int {
	text := d.scalar(n)
	v, err := strconv.Atoi(text)
	if err != nil || v < lo || v > hi {
		d.complain(n, "%s: %s: must be a whole number from %d to %d", what, kind(n), lo, hi)
		return lo
	}
	return v
}

// unsigned returns a whole number without a sign.
func (d *decoder) unsigned(n *yaml.Node, what string) uint64 {
	v, err := strconv.ParseUint(d.scalar(n), 10, 64)
	if err != nil {
		d.complain(n, "%s: %s: must be a whole number from 0 to 18446744073709551615", what, kind(n))
	}
	return v
}

// fraction returns a number from lo to hi.
func (d *decoder) fraction(n *yaml.Node, what string, lo, hi float64) float64 {
	v, err := strconv.ParseFloat(d.scalar(n), 64)
	if err != nil || !(v >= lo && v <= hi) {
		d.complain(n, "%s: %s: must be a number from %v to %v", what, kind(n), lo, hi)
		return lo
	}
	return v
}

// oneOf returns which of some words a node is, or -1.
func (d *decoder) oneOf(n *yaml.Node, what string, words ...string) int {
	i := slices.Index(words, d.scalar(n))
	if i < 0 {
		d.complain(n, "%s: %s: must be %s", what, kind(n), strings.Join(words, " or "))
	}
	return i
}

func (d *decoder) truth(n *yaml.Node, what string) bool {
	return d.oneOf(n, what, "true", "false") == 0
}

// scalar is the text of a scalar, or nothing for any other node.
func (d *decoder) scalar(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// Near is the end of an error about an unknown name: the name that was probably
// meant, or all names if they are few.
func Near(name string, known []string) string {
	if best := spelling.Nearest(name, known); best != "" {
		return didYouMean + strconv.Quote(best) + "?"
	}
	if len(known) == 0 {
		return ""
	}
	return "; there are " + strings.Join(known, ", ")
}

const didYouMean = "; did you mean "

// Suggestion returns the word that the error suggests in place of the wrong one, or
// nothing.
func (e *Error) Suggestion() string {
	_, quoted, _ := strings.Cut(e.Text, didYouMean)
	word, err := strconv.Unquote(strings.TrimSuffix(quoted, "?"))
	if err != nil {
		return ""
	}
	return word
}
