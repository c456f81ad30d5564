package scenario

import "go.yaml.in/yaml/v3"

// Headline is the summary that a first look at a file gives.
type Headline struct {
	Algorithm string
	About     string
	N         int
	Violation string // that is expected; empty: none
}

// Glance reads the headline of a file, with a small part of the work of Parse.
func Glance(name string, text []byte) (*Headline, error) {
	d := &decoder{file: name}
	h := &Headline{}
	if top := d.document(text); d.err == nil {
		for _, p := range d.anyPairs(top, "the scenario") {
			d.glance(h, p.key.Value, p.value)
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return h, nil
}

func (d *decoder) anyPairs(n *yaml.Node, what string) []pair {
	return d.pairs(n, what, func(string) string { return "" })
}

// glance reads one key of a file.
func (d *decoder) glance(h *Headline, key string, n *yaml.Node) {
	switch key {
	case "algorithm":
		h.Algorithm = d.text(n, key)
	case "about":
		h.About = d.text(n, key)
	case "n":
		h.N = d.number(n, key, 1, MaxProcesses)
	case "labels":
		h.N = len(d.items(n, key))
	case "expect":
		if v := find(d.anyPairs(n, key), "violation"); v != nil {
			h.Violation = d.text(v, "violation")
		}
	}
}
