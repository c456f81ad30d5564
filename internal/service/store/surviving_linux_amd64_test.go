package store

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// thing is a file or a folder. It has the contents that processes see, and the contents
// that survive a crash of the machine: only what was synced. After a crash, any part of
// the rest may also exist, in any order: each sector of each write, each change of a
// size, each name. That is less than file systems do, and all that POSIX promises.
type thing struct {
	now, durable []byte
	loose        []change // since the last sync

	names, kept map[string]*thing // of a folder
	moves       []move
}

// change is a write, or a new size if there is no data.
type change struct {
	at   int64
	data []byte
}

// move gives a thing a name, and takes one away.
type move struct {
	gain, lose string
	thing      *thing
}

func newFolder() *thing { return &thing{names: make(map[string]*thing), kept: make(map[string]*thing)} }

func (f *thing) write(at int64, data []byte) { f.alter(change{at, data}) }
func (f *thing) resize(to int64)             { f.alter(change{at: to}) }

func (f *thing) alter(c change) {
	f.now = c.onto(f.now)
	f.loose = append(f.loose, c)
}

// onto makes the change. What is skipped reads as zeros.
func (c change) onto(b []byte) []byte {
	if end := int(c.at) + len(c.data); end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	if c.data == nil {
		return b[:c.at]
	}
	copy(b[c.at:], c.data)
	return b
}

func (f *thing) create(name string, made *thing) { f.rearrange(move{gain: name, thing: made}) }
func (f *thing) remove(name string)              { f.rearrange(move{lose: name}) }
func (f *thing) rename(from, to string) {
	f.rearrange(move{gain: to, lose: from, thing: f.names[from]})
}

func (f *thing) rearrange(m move) {
	m.in(f.names)
	f.moves = append(f.moves, m)
}

func (m move) in(names map[string]*thing) {
	delete(names, m.lose)
	if m.thing != nil {
		names[m.gain] = m.thing
	}
}

// sync makes durable what this file contains, or which names this folder has.
func (f *thing) sync() {
	f.durable, f.loose = bytes.Clone(f.now), nil
	f.kept, f.moves = maps.Clone(f.names), nil
}

// luck is what a crash keeps of the data that was not synced.
type luck struct {
	chance *rand.Rand
	odds   int // of four
	// orderly means that names change on the disk in the same order as for the processes,
	// as on journaling file systems.
	orderly bool
}

func (l *luck) strikes() bool { return l.chance.IntN(4) >= l.odds }

// survive collects the files that a crash leaves, by their paths, and the folders.
func (f *thing) survive(path string, l *luck, files map[string][]byte) {
	if f.names == nil {
		files[path] = f.surviving(l)
		return
	}
	files[path] = nil
	names, moves := maps.Clone(f.kept), f.moves
	if l.orderly {
		moves = moves[:l.chance.IntN(len(moves)+1)]
	}
	for _, m := range moves {
		if l.orderly || !l.strikes() {
			m.in(names)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		names[name].survive(filepath.Join(path, name), l, files)
	}
}

// surviving is what a crash leaves of a file. It is never nil.
func (f *thing) surviving(l *luck) []byte {
	b := append([]byte{}, f.durable...)
	for _, c := range f.loose {
		if c.data == nil {
			if !l.strikes() {
				b = c.onto(b)
			}
			continue
		}
		for rest := c; len(rest.data) > 0; {
			n := min(len(rest.data), sectorBytes-int(rest.at%sectorBytes))
			if !l.strikes() {
				b = change{rest.at, rest.data[:n]}.onto(b)
			}
			rest = change{rest.at + int64(n), rest.data[n:]}
		}
	}
	return b
}

// load takes what is in a directory for durable.
func load(t *testing.T, path string) *thing {
	t.Helper()
	f := newFolder()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		inside := filepath.Join(path, e.Name())
		if e.IsDir() {
			f.names[e.Name()] = load(t, inside)
			continue
		}
		b := readFile(t, inside)
		f.names[e.Name()] = &thing{now: b, durable: bytes.Clone(b)}
	}
	f.sync()
	return f
}

// unload writes down what a crash has left.
func unload(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		var err error
		if b := files[path]; b == nil {
			err = os.MkdirAll(filepath.Join(dir, path), 0o700)
		} else {
			err = os.WriteFile(filepath.Join(dir, path), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
