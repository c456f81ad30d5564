// Package longrun makes one report of runs that take too long for every change.
//
// A part of it is a command, run by internal/test/longrun/run: tests, benchmarks, or a
// program of any kind. What it has to say it says by [Note], one line of JSON for
// each subject, in a file that the environment names; who is not asked for notes
// makes none. Notes are kept with the repository, under a [Header] that says what
// ran where and when, so that parts can be run alone and the report, which [Report]
// makes of what there is, is always whole.
package longrun

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Variable is the environment variable that names the file for notes.
const Variable = "LONGRUN"

// Header is what is known of a part as a whole.
type Header struct {
	Title   string  `json:"title"`
	Command string  `json:"command"`
	Commit  string  `json:"commit"`
	Date    string  `json:"date"`
	Machine string  `json:"machine"`
	Seconds float64 `json:"seconds"`
	Total   bool    `json:"total"` // the figures can be added up
}

// Figure is a number with a name.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Subject is what a part says of one subject.
type Subject struct {
	Name    string   `json:"subject"`
	Figures []Figure `json:"figures"`
}

// Benchmark reads the line of a benchmark, as go test prints it.
func Benchmark(line string) (subject string, figures []Figure, ok bool) {
	words := strings.Fields(line)
	if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
		return "", nil, false
	}
	subject = strings.TrimPrefix(words[0], "Benchmark")
	if at := strings.LastIndexByte(subject, '-'); at >= 0 {
		if _, err := strconv.Atoi(subject[at+1:]); err == nil { // the number of processors
			subject = subject[:at]
		}
	}
	for i := 2; i+1 < len(words); i += 2 {
		value, err := strconv.ParseFloat(words[i], 64)
		if err != nil {
			return "", nil, false
		}
		figures = append(figures, Figure{words[i+1], value})
	}
	return subject, figures, true
}

// Asked reports whether somebody wants notes.
func Asked() bool { return os.Getenv(Variable) != "" }

// Note says the figures of a subject, if anybody wants to know. Programs that run
// side by side may note in the same file: a line is written at once.
func Note(subject string, figures ...Figure) error {
	if !Asked() {
		return nil
	}
	file, err := os.OpenFile(os.Getenv(Variable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("longrun: %w", err)
	}
	defer file.Close()
	return json.NewEncoder(file).Encode(Subject{subject, figures})
}

// Write puts a part into a file of the given folder: its header and, in order,
// the notes that it left in another file, which may not exist.
func Write(folder, part string, header Header, notes string) error {
	text, err := os.ReadFile(notes)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	taken, err := decode[Subject](text)
	if err != nil {
		return err
	}
	slices.SortFunc(taken, before)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	if err := encoder.Encode(header); err != nil {
		return err
	}
	for _, n := range taken {
		if err := encoder.Encode(n); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, part+".jsonl"), out.Bytes(), 0o644)
}

func before(a, b Subject) int {
	value := func(a, b Figure) int { return cmp.Compare(a.Value, b.Value) }
	return cmp.Or(cmp.Compare(a.Name, b.Name), slices.CompareFunc(a.Figures, b.Figures, value))
}

func decode[T any](text []byte) ([]T, error) {
	var all []T
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var one T
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("longrun: note %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, nil
}

const intro = `# Long runs

` + "`make long`" + ` runs tests that take too long for every change. You can run each part alone. The parts
write this page, which shows the last run of each. [docs/long-runs](long-runs) has the figures.
`

// Report writes what the parts in a folder say, in the order of their names.
func Report(folder string) ([]byte, error) {
	parts, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(intro)
	for _, part := range parts {
		text, err := os.ReadFile(part)
		if err != nil {
			return nil, err
		}
		if err := section(&out, text); err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
	}
	return out.Bytes(), nil
}

// Parse reads a part that Write has written.
func Parse(text []byte) (h Header, notes []Subject, err error) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if err := json.Unmarshal(first, &h); err != nil {
		return h, nil, err
	}
	notes, err = decode[Subject](rest)
	return h, notes, err
}

func section(out *bytes.Buffer, text []byte) error {
	h, notes, err := Parse(text)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n## %s\n\n    %s\n\nPassed on %s, at %s, in %s s, on %s.\n", h.Title, h.Command, h.Date, h.Commit, Number(h.Seconds), h.Machine)
	if len(notes) > 0 {
		table(out, notes, h.Total)
	}
	return nil
}

// table has a column for each figure that a note has.
func table(out *bytes.Buffer, notes []Subject, total bool) {
	var names []string
	sums := Subject{Name: "**all**"}
	for _, n := range notes {
		for _, f := range n.Figures {
			at := slices.Index(names, f.Name)
			if at < 0 {
				at = len(names)
				names = append(names, f.Name)
				sums.Figures = append(sums.Figures, Figure{Name: f.Name})
			}
			sums.Figures[at].Value += f.Value
		}
	}
	fmt.Fprintf(out, "\n|  | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---:|", len(names)))
	if total {
		notes = append(notes, sums)
	}
	for _, n := range notes {
		fmt.Fprintf(out, "| %s |", n.Name)
		for _, name := range names {
			cell := ""
			if at := slices.IndexFunc(n.Figures, func(f Figure) bool { return f.Name == name }); at >= 0 {
				cell = Number(n.Figures[at].Value)
			}
			fmt.Fprintf(out, " %s |", cell)
		}
		out.WriteString("\n")
	}
}

// Number writes a number with three digits or more that count, and its thousands
// apart.
func Number(v float64) string {
	digits := 0
	for limit := 100.0; v < limit && v != float64(int64(v)) && digits < 3; limit /= 10 {
		digits++
	}
	whole, rest, _ := strings.Cut(fmt.Sprintf("%.*f", digits, v), ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}

// Commit names the commit of the work tree in dir, with "-dirty" behind it if
// anything is not as it was committed, but for what lies in docs: reports write
// there, and the next part is none the less a run of that commit.
func Commit(dir string) string {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		return "no commit"
	}
	if changes, err := git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)docs"); err != nil || changes != "" {
		commit += "-dirty"
	}
	return commit
}
