package journal_test

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/trace/journal"
)

// kept returns the journal of a scenario.
func kept(t testing.TB, text string) *journal.Journal {
	t.Helper()
	s, err := scenario.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	j := &journal.Journal{}
	run, err := s.Begin(j)
	if err != nil {
		t.Fatal(err)
	}
	for run.Step() {
	}
	return j
}

// Runs with all that an input may hold.
var runs = []string{
	"algorithm: lamport\nn: 3\nworkload: {commands: [{at: 0, acquire: 1}, {at: 0, acquire: 2}, {at: 1, release: 3}]}\n",
	"algorithm: majority\nn: 3\nlinks: {drop: 0.1, duplicate: 0.2}\nlimit: {time: 30}\n" +
		"workload: {regime: saturated}\nfaults: [{at: 3, crash: 1, for: 5}, {at: 6, crash-in-step: 2, effects: 1, for: 9}, {at: 20, pause: 3, for: 4}]\n",
	"algorithm: dijkstra\nn: 3\nworkload: {regime: saturated}\nlimit: {time: 10}\nfaults: [{at: 0, corrupt: 2, state: 1}]\n",
	"algorithm: generals\nn: 4\ntraitors: [3]\nworkload: {commands: [{at: 0, propose: 1, by: 1}]}\nlimit: {time: 100}\n",
}

func TestFilesThatWereChangedAreRefused(t *testing.T) {
	file := kept(t, runs[0]).Append(nil)
	if _, err := journal.Decode(file, algorithm.Find); err != nil {
		t.Fatal(err)
	}
	for i := range file {
		changed := bytes.Clone(file)
		changed[i] ^= 4
		if _, err := journal.Decode(changed, algorithm.Find); err == nil {
			t.Errorf("a file with byte %d changed is accepted", i)
		}
		if _, err := journal.Decode(file[:i], algorithm.Find); err == nil {
			t.Errorf("the first %d bytes of a file are accepted", i)
		}
	}
}

// What a machine cannot take is refused, whatever its checksum says.
func TestImpossibleInputsAreRefused(t *testing.T) {
	file := kept(t, runs[0]).Append(nil)
	begin := bytes.IndexByte(file, '\n') + 1
	for _, c := range []struct{ name, input, want string }{
		{"unknown form", "\x40\x01\x00\x00", "unknown input of form 64"},
		{"unknown kind", "\x00\xff\x00\x00\x00", "kind 255"},
		{"unknown process", "\x00\x01\x07\x00\x00", "process 7 must be less than 3"},
		{"cause in the future", "\x04\x01\x00\x00\x05\x00", "5 records back"},
		{"delivery without a message", "\x00\x03\x00\x00\x00", "a message belongs to a delivery"},
		{"timer that is none", "\x00\x04\x00\x00\x02\x01", "unknown timer 1"},
		{"release by one that is away", "\x00\x01\x00\x00\x40\x01\x00\x07\x00\x00\x00", "cannot take it"},
		{"choices that nobody makes", "\x10\x01\x00\x00\x01\x01\x40\x01", "cannot take it"},
		{"end in the middle", "\x00\x01", "ends too early"},
	} {
		_, err := journal.Decode(sealed(append(bytes.Clone(file[:begin]), c.input...)), algorithm.Find)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, it must contain %q", c.name, err, c.want)
		}
	}
}

// sealed appends the checksum of a file.
func sealed(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// FuzzDecode changes the inputs behind the first line, under a checksum that fits.
func FuzzDecode(f *testing.F) {
	var lines [][]byte
	for i, text := range runs {
		line, rest, _ := bytes.Cut(kept(f, text).Append(nil), []byte("\n"))
		lines = append(lines, append(line, '\n'))
		f.Add(byte(i), rest[:len(rest)-sha256.Size])
	}
	f.Fuzz(func(t *testing.T, run byte, data []byte) {
		file := sealed(append(bytes.Clone(lines[int(run)%len(lines)]), data...))
		j, err := journal.Decode(file, algorithm.Find)
		if err != nil {
			return
		}
		if last := j.Len(); last > 0 {
			j.Describe(max(1, last-10), last)
		}
		if !bytes.Equal(j.Append(nil), file) {
			t.Fatal("what was read is written otherwise")
		}
	})
}
