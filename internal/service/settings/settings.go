// Package settings lists the settings of a cluster: what its operators choose once for all servers.
// The choices are part of the replicated state.
package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/kit/spelling"
	"github.com/conclave-io/conclave/internal/kit/wire"
)

// Setting is something that operators can choose.
type Setting struct {
	Name   string
	Values []string // the first is the default
	Text   string   // what it decides, for people
}

// The names of the settings, and their values.
const (
	Names = "names"
	Any   = "any" // names of locks, elections and guards may have any form
	NFC   = "nfc" // new ones must be in the Unicode normalization form C
)

// All are the settings, by name. Names and values are part of the formats. A setting that is added
// needs a level of its own.
var All = []Setting{
	{Names, []string{Any, NFC}, "in which Unicode form a name must be that is locked, campaigned for or guarded: any, or only nfc"},
}

// Value is a setting with its present value.
type Value struct {
	Setting
	Value string
}

// Check returns what is wrong with a name and a value of a setting, or "".
func Check(name, value string) string {
	at := slices.IndexFunc(All, func(s Setting) bool { return s.Name == name })
	if at < 0 {
		names := make([]string, len(All))
		for i := range All {
			names[i] = All[i].Name
		}
		return "setting: " + misspelt("name", name, names)
	}
	if s := &All[at]; !slices.Contains(s.Values, value) {
		return name + ": " + misspelt("value", value, s.Values)
	}
	return ""
}

func misspelt(what, given string, known []string) string {
	if near := spelling.Nearest(strings.ToLower(given), known); near != "" {
		return fmt.Sprintf("%.40q: unknown %s; did you mean %q?", given, what, near)
	}
	return fmt.Sprintf("%.40q: unknown %s; expected %s", given, what, strings.Join(known, " or "))
}

// State has the values of all settings. A nil State has the defaults. It never changes.
type State struct {
	revision uint64
	set      map[string]string // the values that are not the default
}

// Revision grows with each change; 0 means that there was none.
func (s *State) Revision() uint64 {
	if s == nil {
		return 0
	}
	return s.revision
}

// Changed reports whether a setting is not the default.
func (s *State) Changed() bool { return s != nil && len(s.set) > 0 }

// NFC reports whether new names must be in the form NFC.
func (s *State) NFC() bool { return s.Changed() && s.set[Names] == NFC }

// List returns all settings with their values.
func (s *State) List() []Value {
	list := make([]Value, len(All))
	for i := range All {
		list[i] = Value{All[i], All[i].Values[0]}
		if s != nil && s.set[All[i].Name] != "" {
			list[i].Value = s.set[All[i].Name]
		}
	}
	return list
}

// With returns the state after a change, which Check has accepted. The new revision is at least the
// given one. If nothing changes, it is the same state.
func (s *State) With(name, value string, revision uint64) *State {
	next := &State{revision: max(revision, s.Revision()+1), set: make(map[string]string)}
	for _, v := range s.List() {
		if v.Name == name {
			if v.Value == value {
				return s
			}
			v.Value = value
		}
		if v.Value != v.Values[0] {
			next.set[v.Name] = v.Value
		}
	}
	return next
}

// Size returns the approximate size of the encoding.
func (s *State) Size() int {
	if s == nil {
		return 2
	}
	return 10 + 16*len(s.set)
}

// Append appends the encoding: the revision, and the values that are not the default.
func (s *State) Append(b []byte) []byte {
	b = wire.AppendUint(b, s.Revision())
	if s == nil {
		return wire.AppendUint(b, 0)
	}
	b = wire.AppendUint(b, uint64(len(s.set)))
	for _, v := range s.List() {
		if v.Value != v.Values[0] {
			b = wire.AppendBytes(wire.AppendBytes(b, v.Name), v.Value)
		}
	}
	return b
}

// Read reads what Append wrote.
func Read(rd *wire.Reader) *State {
	s := &State{revision: rd.Uint(), set: make(map[string]string)}
	last := ""
	for n := rd.Count(); n > 0 && rd.Err() == nil; n-- {
		name, value := rd.String(), rd.String()
		problem := Check(name, value)
		switch {
		case problem == "" && name <= last:
			problem = fmt.Sprintf("%s: comes after %q", name, last)
		case problem == "" && s.With(name, value, 0) == s:
			problem = fmt.Sprintf("%s: %q: is the default, which is not stored", name, value)
		}
		if problem != "" && rd.Err() == nil {
			rd.Fail(fmt.Errorf("settings: %s", problem))
		}
		last, s.set[name] = name, value
	}
	if s.revision == 0 {
		if len(s.set) > 0 && rd.Err() == nil {
			rd.Fail(fmt.Errorf("settings: %d are changed at revision 0", len(s.set)))
		}
		return nil
	}
	return s
}
