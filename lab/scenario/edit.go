package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/process"
)

// AddFault returns the text of a scenario with one more fault, such as {at: 3, crash:
// 2}, and its line. Everything else stays unchanged, including comments. An error is
// about the text, or about the result.
func AddFault(name string, text []byte, fault string) (edited []byte, line int, err error) {
	return add(name, text, fault, "faults")
}

// AddCommand does the same for a command of the workload.
func AddCommand(name string, text []byte, command string) (edited []byte, line int, err error) {
	return add(name, text, command, "workload", "commands")
}

// add adds an item to a list at a path of keys.
func add(name string, text []byte, item string, keys ...string) ([]byte, int, error) {
	return edit(name, text, func(e *editor, top *yaml.Node) error {
		e.add(top, len(e.lines)+1, "", item, keys)
		return nil
	})
}

// edit changes a text that must be right before and after.
func edit(name string, text []byte, change func(e *editor, top *yaml.Node) error) ([]byte, int, error) {
	if _, err := Parse(name, text); err != nil {
		return nil, 0, err
	}
	d := &decoder{file: name}
	e := editor{lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")}
	if err := change(&e, d.document(text)); err != nil {
		return nil, 0, err
	}
	edited := []byte(strings.Join(e.lines, "\n") + "\n")
	if _, err := Parse(name, edited); err != nil {
		return nil, 0, err
	}
	return edited, e.line, nil
}

// Schedule is the schedule of a scenario as text.
type Schedule struct {
	After  string // "": from the beginning
	Record uint64 // instead of After, unless it is 0
	Turns  []string
	Rest   bool // the run continues by itself
}

// SetSchedule returns the text of a scenario with another schedule, and the line where
// the schedule begins.
func SetSchedule(name string, text []byte, s Schedule) (edited []byte, line int, err error) {
	return edit(name, text, func(e *editor, top *yaml.Node) error {
		switch {
		case top.Style&yaml.FlowStyle == 0:
			e.replace(top, "schedule", s.block())
		case hasKey(top, "schedule"):
			return &Error{File: name, Line: top.Line, Text: "the schedule is in braces; write it on lines of its own"}
		default:
			e.into(top, s.braces())
		}
		return nil
	})
}

// begin returns the key that says when the schedule begins, or "" if it begins with the run.
func (s *Schedule) begin() string {
	switch {
	case s.Record > 0:
		return fmt.Sprintf("record: %d", s.Record)
	case s.After != "":
		return "after: " + s.After
	}
	return ""
}

// block returns the schedule as lines.
func (s *Schedule) block() []string {
	lines := []string{"schedule:"}
	if begin := s.begin(); begin != "" {
		lines = append(lines, "  "+begin)
	}
	if s.Rest {
		lines = append(lines, "  rest: run")
	}
	if len(s.Turns) == 0 {
		return append(lines, "  turns: []")
	}
	lines = append(lines, "  turns:")
	for _, t := range s.Turns {
		lines = append(lines, "    - "+t)
	}
	return lines
}

// braces returns the schedule in one line.
func (s *Schedule) braces() string {
	text := "schedule: {"
	if begin := s.begin(); begin != "" {
		text += begin + ", "
	}
	if s.Rest {
		text += "rest: run, "
	}
	return text + "turns: [" + strings.Join(s.Turns, ", ") + "]}"
}

// editor changes a text line by line.
type editor struct {
	lines []string
	line  int // the last one added or changed, from 1
}

// add adds an item below a mapping that ends before a line. It also adds missing keys.
func (e *editor) add(n *yaml.Node, end int, indent, item string, keys []string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != keys[0] {
			continue
		}
		if i+2 < len(n.Content) {
			end = n.Content[i+2].Line
		}
		value := n.Content[i+1]
		switch {
		case len(keys) > 1 && value.Kind == yaml.MappingNode:
			e.add(value, end, strings.Repeat(" ", value.Column-1), item, keys[1:])
		case value.Style&yaml.FlowStyle != 0:
			e.into(value, item)
		default:
			e.insert(e.last(end), strings.Repeat(" ", value.Column-1)+"- "+item)
		}
		return
	}
	if n.Style&yaml.FlowStyle != 0 {
		e.into(n, strings.Join(keys, ": {")+": ["+item+"]"+strings.Repeat("}", len(keys)-1))
		return
	}
	at := e.last(end)
	for _, key := range keys {
		e.insert(at, indent+key+":")
		at, indent = at+1, indent+"  "
	}
	e.insert(at, indent+"- "+item)
}

// replace puts lines in place of a key of the top mapping, or at the end.
func (e *editor) replace(top *yaml.Node, key string, lines []string) {
	at, end := e.last(len(e.lines)+1), len(e.lines)+1
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != key {
			continue
		}
		if i+2 < len(top.Content) {
			end = top.Content[i+2].Line
		}
		at = top.Content[i].Line - 1
		e.lines = append(e.lines[:at:at], e.lines[e.last(end):]...)
	}
	e.lines = append(e.lines[:at:at], append(lines, e.lines[at:]...)...)
	e.line = at + 1
}

// last returns the number of lines up to the last line, before a given one, that is
// neither empty nor a comment.
func (e *editor) last(end int) int {
	at := end - 1
	for at > 0 {
		if line := strings.TrimSpace(e.lines[at-1]); line != "" && line[0] != '#' {
			break
		}
		at--
	}
	return at
}

// insert inserts a line after the given number of lines.
func (e *editor) insert(at int, text string) {
	e.lines = append(e.lines[:at:at], append([]string{text}, e.lines[at:]...)...)
	e.line = at + 1
}

// into inserts an item at the start of a list or mapping in brackets.
func (e *editor) into(n *yaml.Node, text string) {
	if len(n.Content) > 0 {
		text += ", "
	}
	line := []rune(e.lines[n.Line-1])
	e.lines[n.Line-1] = string(line[:n.Column]) + text + string(line[n.Column:])
	e.line = n.Line
}

// TimeText returns a time as a scenario has it: in D if that is short, otherwise in
// nanoseconds.
func TimeText(t, d process.Duration) string {
	scaled, digits := t, 0
	for scaled%d != 0 && digits < 3 {
		scaled, digits = scaled*10, digits+1
	}
	if scaled%d != 0 {
		return fmt.Sprintf("%dns", t)
	}
	return strconv.FormatFloat(float64(scaled/d)/[]float64{1, 10, 100, 1000}[digits], 'f', -1, 64)
}
