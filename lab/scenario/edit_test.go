package scenario_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

// Adding a fault or a command to a scenario adds only that. Everything else stays, and
// the result names the line.
func TestEditsOfEveryFile(t *testing.T) {
	for _, path := range files(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, err := scenario.Parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		was := before.Config()
		fault := "{at: 7.5, pause: " + was.Process.Text(0) + ", for: 2}"
		edited, line, err := scenario.AddFault(path, text, fault)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if !strings.Contains(strings.Split(string(edited), "\n")[line-1], fault) {
			t.Errorf("%s: line %d does not have the fault:\n%s", path, line, edited)
		}
		after, err := scenario.Parse(path, edited)
		if err != nil {
			t.Fatal(err)
		}
		is := after.Config()
		if len(is.Faults) != len(was.Faults)+1 {
			t.Errorf("%s: %d faults became %d", path, len(was.Faults), len(is.Faults))
		}
		is.Faults, was.Faults, is.Judges, was.Judges = nil, nil, nil, nil
		if is.Spec.Name != was.Spec.Name {
			t.Errorf("%s: %s became %s", path, was.Spec.Name, is.Spec.Name)
		}
		is.Spec, was.Spec = nil, nil
		if !reflect.DeepEqual(is, was) {
			t.Errorf("%s: more than the faults changed:\n%s", path, edited)
		}
		command := "{at: 7.5, leave: " + was.Process.Text(0) + "}"
		if edited, line, err = scenario.AddCommand(path, edited, command); err != nil {
			t.Errorf("%s: %v", path, err)
		} else if !strings.Contains(strings.Split(string(edited), "\n")[line-1], command) {
			t.Errorf("%s: line %d does not have the command:\n%s", path, line, edited)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct{ name, before, after string }{
		{"no list yet", "algorithm: lamport\nn: 3\n# the end\n", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 1, crash: 2}\n# the end\n"},
		{"no newline", "algorithm: lamport\nn: 3", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 1, crash: 2}\n"},
		{"block", "algorithm: lamport\nfaults:\n- at: 3 # why\n  heal: all\n\n# n\nn: 3\n", "algorithm: lamport\nfaults:\n- at: 3 # why\n  heal: all\n- {at: 1, crash: 2}\n\n# n\nn: 3\n"},
		{"brackets", "algorithm: lamport\nn: 3\nfaults: [{at: 3, heal: all}]\n", "algorithm: lamport\nn: 3\nfaults: [{at: 1, crash: 2}, {at: 3, heal: all}]\n"},
		{"empty brackets", "algorithm: lamport\nn: 3\nfaults: []\n", "algorithm: lamport\nn: 3\nfaults: [{at: 1, crash: 2}]\n"},
		{"all in braces", "{algorithm: lamport, n: 3}\n", "{faults: [{at: 1, crash: 2}], algorithm: lamport, n: 3}\n"},
		{"several lines", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 3,\n     heal: all\n    }\n", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 3,\n     heal: all\n    }\n  - {at: 1, crash: 2}\n"},
	} {
		got, _, err := scenario.AddFault("test", []byte(c.before), "{at: 1, crash: 2}")
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\n%s\nit must be\n%s", c.name, err, got, c.after)
		}
	}
	for _, c := range []struct{ name, before, after string }{
		{"no workload", "algorithm: lamport\nn: 3\n", "algorithm: lamport\nn: 3\nworkload:\n  commands:\n    - {at: 1, acquire: 2}\n"},
		{"no commands", "algorithm: lamport\nn: 3\nworkload:\n    section: 2\n", "algorithm: lamport\nn: 3\nworkload:\n    section: 2\n    commands:\n      - {at: 1, acquire: 2}\n"},
		{"workload in braces", "algorithm: lamport\nn: 3\nworkload: {section: 2}\n", "algorithm: lamport\nn: 3\nworkload: {commands: [{at: 1, acquire: 2}], section: 2}\n"},
		{"all in braces", "{algorithm: lamport, n: 3}\n", "{workload: {commands: [{at: 1, acquire: 2}]}, algorithm: lamport, n: 3}\n"},
		{"others behind", "algorithm: lamport\nworkload:\n  commands:\n    - {at: 3, acquire: 1}\n  section: 2\nn: 3\n", "algorithm: lamport\nworkload:\n  commands:\n    - {at: 3, acquire: 1}\n    - {at: 1, acquire: 2}\n  section: 2\nn: 3\n"},
	} {
		got, _, err := scenario.AddCommand("test", []byte(c.before), "{at: 1, acquire: 2}")
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\n%s\nit must be\n%s", c.name, err, got, c.after)
		}
	}
	if _, _, err := scenario.AddFault("test", []byte("algorithm: lamport\nn: 3\n"), "{at: 1, crash: 9}"); err == nil || !strings.Contains(err.Error(), "test:4:") {
		t.Errorf("a crash of nobody: %v", err)
	}
}

func TestTimeText(t *testing.T) {
	for text, d := range map[string]process.Duration{"0": 1000, "3": 1000, "2.5": 1000, "12.125": 1000, "7ns": 1_000_000, "1000001ns": 1_000_000} {
		at, ok := scenario.ParseTime(text, d)
		if got := scenario.TimeText(at, d); !ok || got != text {
			t.Errorf("%s becomes %d and that %s", text, at, got)
		}
	}
}
