package journal

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Match says which records are looked for: those for which all that is given holds.
type Match struct {
	Rule    string     // that fired
	Message string     // the name of the message that it delivers, loses or repeats
	Kind    string     // see Kinds
	Process process.ID // None: any
	Flags   Flags      // all of these
}

// Find returns the numbers of the records that match among those from one number to
// another, both included.
func (j *Journal) Find(m Match, from, to int) []int {
	var found []int
	types := j.typesNamed(m.Message)
	bits, beyond := j.rulesNamed(m.Rule)
	for i := from - 1; i < to; i++ {
		switch {
		case j.flags[i]&m.Flags != m.Flags,
			m.Process != process.None && process.ID(j.process[i]) != m.Process,
			m.Kind != "" && Kinds[j.kind[i]] != m.Kind,
			m.Message != "" && !slices.Contains(types, j.typ[i]):
			continue
		}
		fired := m.Rule == "" || j.fired[i]&bits != 0 || beyond && slices.Contains(j.Describe(i+1, i+1)[0].Rules, m.Rule)
		if fired {
			found = append(found, i+1)
		}
	}
	return found
}

// typesNamed returns the types of the messages of a name, of all layers.
func (j *Journal) typesNamed(name string) []uint8 {
	var types []uint8
	for layer, base := range j.types {
		for i, m := range j.spec.Layer(uint8(layer)).Messages {
			if m.Name == name {
				types = append(types, uint8(base+i+1))
			}
		}
	}
	return types
}

// rulesNamed returns the bits of the rules of a name, and whether one of these rules has no
// bit.
func (j *Journal) rulesNamed(name string) (bits uint64, beyond bool) {
	for layer, base := range j.rules {
		for i, r := range j.spec.Layer(uint8(layer)).Rules {
			if r.Name == name {
				bits |= 1 << (base + i) // 0 beyond 64 bits
				beyond = beyond || base+i >= 64
			}
		}
	}
	return bits, beyond
}
