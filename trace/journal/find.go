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
	types, bits, beyond := j.typesNamed(m.Message), j.bitsNamed(m.Rule), j.hasRuleBeyond(m.Rule)
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

// bitsNamed returns the bits of the rules of a name that have one.
func (j *Journal) bitsNamed(name string) uint64 {
	bits := uint64(0)
	for layer, base := range j.rules {
		for i, r := range j.spec.Layer(uint8(layer)).Rules {
			if r.Name == name && base+i < 64 {
				bits |= 1 << (base + i)
			}
		}
	}
	return bits
}

// hasRuleBeyond reports whether a rule of a name has no bit.
func (j *Journal) hasRuleBeyond(name string) bool {
	for layer, base := range j.rules {
		for i, r := range j.spec.Layer(uint8(layer)).Rules {
			if r.Name == name && base+i >= 64 {
				return true
			}
		}
	}
	return false
}
