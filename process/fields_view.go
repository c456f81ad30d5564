package process

import "strconv"

// View returns the fields of m in order, as shown to people and in traces. Processes
// are shown by their labels in c.
func View(m Machine, c *Config) []FieldView {
	var views []FieldView
	f := Fields{
		mode:  modeView,
		view:  func(v FieldView) { views = append(views, v) },
		label: c.Text,
	}
	m.Fields(&f)
	return views
}

// Change is a field whose value differs between two states.
type Change struct {
	Name   string
	Before any
	After  any
}

// Diff returns what changed between two views of one machine, in field order.
func Diff(before, after []FieldView) []Change {
	Assert(len(before) == len(after), "a machine always names the same fields")
	var changes []Change
	for i, b := range before {
		if a := after[i]; a.String() != b.String() {
			changes = append(changes, Change{Name: b.Name, Before: b.Value, After: a.Value})
		}
	}
	return changes
}

// labels shows a list of processes. A list of texts, unlike a list of numbers, also
// shows None.
func (f *Fields) labels(ids []ID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = f.label(id)
	}
	return texts
}

// Text shows a process by its label, or "-" for None.
func (c *Config) Text(p ID) string {
	if p == None {
		return "-"
	}
	return strconv.FormatUint(uint64(c.Label(p)), 10)
}
