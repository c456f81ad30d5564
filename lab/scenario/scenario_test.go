package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// Every complaint names the line, what is there and what would be right.
func TestErrorsNameTheLine(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "f.yaml:1: the file is empty: must at least name an algorithm"},
		{"only a comment", "# nothing\n", "f.yaml:1: the file is empty: must at least name an algorithm"},
		{"no mapping", "lamport", `f.yaml:1: the scenario: "lamport": must be a mapping of keys to values`},
		{"a list", "- a\n- b", "f.yaml:1: the scenario: a list: must be a mapping of keys to values"},
		{"null", "~", "f.yaml:1: the scenario: empty: must be a mapping of keys to values"},
		{"no YAML", "n: 3\nalgorithm: [\n", "f.yaml:2: invalid YAML: did not find expected node content"},
		{"tab", "n: 3\n\talgorithm: lamport", "f.yaml:2: invalid YAML: found a tab character that violates indentation"},
		{"no algorithm", "n: 3", "f.yaml:1: the algorithm is missing: add a line such as algorithm: lamport"},
		{"no n", "algorithm: lamport", "f.yaml:1: the number of processes is missing: set n or labels"},
		{"unknown algorithm", "n: 3\nalgorithm: lampert", `f.yaml:2: unknown algorithm "lampert"; did you mean "lamport"?`},
		{"unfinished algorithm", "n: 3\nalgorithm: ricart", `f.yaml:2: unknown algorithm "ricart"; did you mean "ricart-agrawala"?`},
		{"misspelt key", "algorithm: lamport\nn: 3\nwrokload: {}", `f.yaml:3: the scenario has no key "wrokload"; did you mean "workload"?`},
		{"key twice", "n: 3\nalgorithm: lamport\nn: 4", `f.yaml:3: the scenario has "n" twice, first on line 1`},
		{"two documents", "n: 3\nalgorithm: lamport\n---\nn: 4", "f.yaml:3: the file has more than one document: must have only one"},
		{"an alias", "algorithm: lamport\nn: &x 3\nseed: *x", "f.yaml:3: seed: an alias: must be a whole number from 0 to 18446744073709551615"},
		{"n of the wrong type", "algorithm: lamport\nn: many", `f.yaml:2: n: "many": must be a whole number from 1 to 1000000`},
		{"n too small", "algorithm: lamport\nn: 0", `f.yaml:2: n: "0": must be a whole number from 1 to 1000000`},
		{"n too large for all to all", "algorithm: lamport\nn: 2001", "f.yaml:2: n: 2001: must be 1 to 2000 for lamport"},
		{"a label twice", "algorithm: lamport\nlabels: [1,\n 2, 1]", "f.yaml:3: label 1 is given to two processes"},
		{"labels and n", "algorithm: lamport\nlabels: [1, 2]\nn: 3", "f.yaml:2: there are 2 labels, n says 3"},
		{"no labels", "algorithm: lamport\nlabels: []", "f.yaml:1: the number of processes is missing: set n or labels"},
		{"d without a unit", "algorithm: lamport\nd: 5", `f.yaml:2: d: "5": must be a time with its unit, such as 5ms, from 1us to 1s`},
		{"unknown option", "algorithm: central\nn: 3\noptions: {mood: deny}", `f.yaml:3: options of central has no key "mood"; did you mean "mode"?`},
		{"option out of range", "algorithm: k-ricart-agrawala\nn: 3\noptions: {k: zero}", `f.yaml:3: option k: "zero": must be a whole number from `},
		{"label that does not exist", "algorithm: lamport\nlabels: [2, 5]\nworkload:\n  commands:\n    - {at: 3, acquire: 3}",
			"f.yaml:5: acquire: 3: no such label; labels are 2 5"},
		{"coordinator", "algorithm: central\nn: 3\ntopology: {coordinator: 4}", "f.yaml:3: coordinator: 4: no such label; labels are 1 to 3"},
		{"ring", "algorithm: token-ring\nn: 3\ntopology:\n  ring: [1, 2]", "f.yaml:4: ring visits 2 processes, there are 3"},
		{"ring twice", "algorithm: token-ring\nn: 3\ntopology:\n  ring: [1, 2,\n    1]", "f.yaml:5: ring visits 1 twice"},
		{"tree", "algorithm: raymond\nn: 3\ntopology: {tree: bush}", `f.yaml:3: tree: "bush": must be star, line, binary or {child: parent}`},
		{"tree with two roots", "algorithm: raymond\nn: 3\ntopology:\n  tree: {1: 2}", "f.yaml:3: tree has 2 roots: must have 1"},
		{"no such plane", "algorithm: maekawa\nn: 4\ntopology: {quorums: plane}", "f.yaml:3: no plane is known for 4 processes, only for 3, 7, 13, 21, 31 and others; use grid"},
		{"disjoint quorums", "algorithm: maekawa\nn: 2\ntopology:\n  quorums: {1: [1], 2: [2]}", "f.yaml:4: the voting sets of 1 and 2 have no common member, so both could be inside"},
		{"not in its quorum", "algorithm: maekawa\nn: 2\ntopology:\n  quorums:\n    1: [2]", "f.yaml:5: the voting set of 1 does not have 1 itself"},
		{"a quorum missing", "algorithm: maekawa\nn: 2\ntopology:\n  quorums: {1: [1]}", "f.yaml:3: voting set [] of rank 1 does not have rank 1 itself"},
		{"probability", "algorithm: lamport\nn: 3\nlinks:\n  drop: 30%", `f.yaml:4: drop: "30%": must be a number from 0 to 1`},
		{"delay", "algorithm: lamport\nn: 3\nlinks:\n  delay: {uniform: [3, 1]}", "f.yaml:4: delay ends before it begins: must be [least, most]"},
		{"no delay", "algorithm: lamport\nn: 3\nlinks:\n  delay: []", "f.yaml:4: delay is an empty list: must have at least one time"},
		{"bad unit", "algorithm: lamport\nn: 3\nlinks:\n  delay: 3h", `f.yaml:4: delay: "3h": must be a time such as 3, 2.5D or 5ms, up to a year`},
		{"negative time", "algorithm: lamport\nn: 3\ndisk: -1", `f.yaml:3: disk: "-1": must be a time such as 3, 2.5D or 5ms, up to a year`},
		{"traitor", "algorithm: generals\nn: 3\ntraitors: [4]", "f.yaml:3: a process of traitors: 4: no such label; labels are 1 to 3"},
		{"traitors of another", "algorithm: floodset\nn: 3\ntraitors: [3]", "f.yaml:3: floodset is not for Byzantine processes"},
		{"override", "algorithm: lamport\nn: 3\nlinks:\n  overrides:\n    - {from: 9}", "f.yaml:5: from: 9: no such label; labels are 1 to 3"},
		{"clock", "algorithm: lamport\nn: 3\nclocks: {a: 3}", `f.yaml:3: clocks has the key "a": must be the label of a process`},
		{"regime", "algorithm: lamport\nn: 3\nworkload: {regime: lazy}", `f.yaml:3: unknown regime "lazy"; there are listed, idle, saturated, loaded`},
		{"regime of an election", "algorithm: bully\nn: 3\nworkload: {regime: idle}", "f.yaml:3: regime: idle: bully is not a mutual exclusion algorithm; use commands"},
		{"two verbs", "algorithm: lamport\nn: 3\nworkload:\n  commands:\n    - {at: 1, acquire: 1, release: 1}", "f.yaml:5: a command is both acquire and release: must be one of them"},
		{"no verb", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 1}", "f.yaml:4: a fault does not say what happens: must have one of the keys crash, "},
		{"misspelt verb", "algorithm: lamport\nn: 3\nworkload:\n  commands:\n    - {at: 1, aquire: 1}", `f.yaml:5: a command has no key "aquire"; did you mean "acquire"?`},
		{"no time", "algorithm: lamport\nn: 3\nfaults:\n  - {crash: 1}", `f.yaml:4: a fault crash: missing key "at"`},
		{"key of another fault", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 1, crash: 1,\n     effect: 3}", `f.yaml:5: a fault crash has no key "effect"; there are at, crash, for`},
		{"unknown message", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 1, lose: RELPY}", `f.yaml:4: lamport has no message "RELPY"; did you mean "REPLY"?`},
		{"empty side", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 1, heal: all}\n  - {at: 1, partition: []}\n  - {at: 1, heal: all}",
			"f.yaml:5: fault 2, partition: side: empty; name the processes that are cut off"},
		{"heal of one", "algorithm: lamport\nn: 3\nfaults:\n  - {at: 1, heal: 3}", `f.yaml:4: heal: "3": must be all, because partitions heal together`},
		{"property", "algorithm: lamport\nn: 3\nexpect: {violation: mutual exlusion}", `f.yaml:3: unknown property "mutual exlusion"; did you mean "mutual exclusion"?`},
		{"unwatchable", "algorithm: lamport\nn: 3\nwatch: [clock bound]", "f.yaml:3: clock bound cannot be watched from outside"},
		{"watch without a number", "algorithm: lamport\nn: 3\nwatch:\n  - at most k inside", "f.yaml:4: at most k inside needs a number: {at most k inside: 2}"},
		{"watch bypass without a number", "algorithm: lamport\nn: 3\nwatch: [bounded bypass]", "f.yaml:3: bounded bypass needs a number: {bounded bypass: 2, since: request}"},
		{"watch with a bad number", "algorithm: lamport\nn: 3\nwatch:\n  - progress\n  - {at most k inside: 0}", "f.yaml:5: at most k inside: "},
		{"watch from a moment", "algorithm: lamport\nn: 3\nwatch:\n  - {bounded bypass: 2,\n     since: arival}", `f.yaml:5: unknown moment "arival"; did you mean "arrival"?`},
		{"watch both", "algorithm: lamport\nn: 3\nwatch: [{at most k inside: 2, bounded bypass: 2}]", "f.yaml:3: a promise to watch must be {at most k inside: number} or {bounded bypass: number}"},
		{"watch k from a moment", "algorithm: lamport\nn: 3\nwatch:\n  - {at most k inside: 2,\n     since: known}", "f.yaml:5: since is for bounded bypass, not for at most k inside"},
		{"watch progress with a number", "algorithm: lamport\nn: 3\nwatch: [{progress: 2}]", `f.yaml:3: a promise to watch has no key "progress"`},
		{"expected message", "algorithm: lamport\nn: 3\nexpect:\n  messages: {RQ: 3}", `f.yaml:4: messages of lamport has no key "RQ"; did you mean "REQ"?`},
		{"reason", "algorithm: lamport\nn: 3\nexpect: {reason: done}", `f.yaml:3: no run ends because of "done"; there are quiet, limit, stalled, violated`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := scenario.Parse("f.yaml", []byte(test.text))
			var where *scenario.Error
			if !errors.As(err, &where) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
}

const everything = `
algorithm: token-ring
about: all that can be said
d: 2ms
labels: [7, 3, 20]
topology: {coordinator: 3, ring: [20, 3, 7]}
links:
  delay: {uniform: [0.5, 1]}
  fifo: false
  drop: 0.25
  overrides:
    - {from: 3, to: 7, delay: [1, 5ms], drop: 0}
    - {to: 20, fifo: true}
clocks: {3: {offset: -2, drift: -100}}
disk: {exponential: 2, least: 1D}
oracle: {detect: 7, elect: 9, silent: true}
workload:
  regime: loaded
  clients: [20, 7]
  section: 100us
  think: 4
  patience: 8
  commands:
    - {at: 1, acquire: 3, hold: release}
    - {at: 2, release: 3}
    - {at: 3, suspect: 20, to: 7}
    - {at: 4, elected: 20, to: 7, round: 2}
    - {at: 5, load: -4, by: 7}
faults:
  - {at: 1, crash-in-step: 3, effects: 2, step: 4, for: 20}
  - {at: 2, partition: [7], one-way: true, for: 3}
  - {at: 3, lose: TOKEN, from: 3, count: 2, skip: 1}
  - {at: 4, drift: 20, ppm: 50}
  - {at: 5, slow-disk: 20, delay: 6}
  - {at: 6, jump: 20, by: -3}
seed: 18446744073709551615
limit: {time: 100, events: 1000, entries: 5, warmup: 1}
watch: [mutual exclusion]
`

// Promises with a number are watched with that number.
func TestWatchWithANumber(t *testing.T) {
	const file = "algorithm: k-ricart-agrawala\noptions: {k: 3}\nn: 5\nworkload: {regime: saturated, section: 3}\nlimit: {entries: 30}\nwatch: ["
	for watch, want := range map[string]process.Property{
		"{at most k inside: 2}": process.AtMostK, "{at most k inside: 3}": "",
		"{bounded bypass: 0}": process.BoundedBypass, "{bounded bypass: 30}": "", "{bounded bypass: 30, since: known}": "",
	} {
		s, err := scenario.Parse("f.yaml", []byte(file+watch+"]"))
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		var got process.Property
		if v := outcome.Result.Violations; len(v) > 0 {
			got = v[0].Property
		}
		if got != want {
			t.Errorf("watch %s: violated is %q, want %q", watch, got, want)
		}
	}
}

// A file can express everything that the simulator can do. Times are in units of D.
func TestEveryKey(t *testing.T) {
	s, err := scenario.Parse("f.yaml", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	const d = 2 * process.Millisecond
	got := s.Config()
	base := sim.Link{Delay: sim.Uniform(d/2, d), Unordered: true, Drop: 0.25}
	to7, to20 := base, base
	to7.Delay, to7.Drop, to20.Unordered = sim.List(d, 5*process.Millisecond), 0, false
	checkEqual(t, "process", got.Process, process.Config{
		N: 3, Labels: []process.Label{7, 3, 20}, Delay: d,
		Topology: process.Topology{Coordinator: 1, Successor: []process.ID{2, 0, 1}},
	})
	checkEqual(t, "links", got.Links, sim.Links{Link: base, Overrides: []sim.Override{
		{From: 1, To: 0, Link: to7}, {From: process.None, To: 2, Link: to20},
	}})
	checkEqual(t, "clocks", got.Clocks, []sim.Clock{{}, {Offset: -2 * d, Drift: -100}, {}})
	checkEqual(t, "disk", got.Disk, sim.Exponential(d, 2*d))
	checkEqual(t, "oracle", got.Oracle, sim.Oracle{Detect: 7 * d, Elect: 9 * d, Silent: true})
	checkEqual(t, "workload", got.Workload, sim.Workload{
		Regime: sim.Loaded, Clients: []process.ID{2, 0}, Patience: 8 * d,
		Section: sim.Constant(100 * process.Microsecond), Think: sim.Constant(4 * d),
		Commands: []sim.Command{
			{At: d, Process: 1, Kind: process.Acquire, Hold: -1},
			{At: 2 * d, Process: 1, Kind: process.Release},
			{At: 3 * d, Process: 0, Kind: process.Suspect, Peer: 2},
			{At: 4 * d, Process: 0, Kind: process.Elected, Peer: 2, Term: process.MakeTerm(2, 2)},
			{At: 5 * d, Process: 0, Kind: process.Load, Value: -4},
		},
	})
	checkEqual(t, "faults", got.Faults, []sim.Fault{
		{At: d, Kind: sim.CrashInStep, Process: 1, Effects: 2, Step: 4, For: 20 * d, From: process.None, To: process.None},
		{At: 2 * d, Kind: sim.Partition, Side: []process.ID{0}, OneWay: true, For: 3 * d, From: process.None, To: process.None},
		{At: 3 * d, Kind: sim.Lose, Message: "TOKEN", From: 1, To: process.None, Count: 2, Skip: 1},
		{At: 4 * d, Kind: sim.Drift, Process: 2, Drift: 50, From: process.None, To: process.None},
		{At: 5 * d, Kind: sim.SlowDisk, Process: 2, Disk: sim.Constant(6 * d), From: process.None, To: process.None},
		{At: 6 * d, Kind: sim.Jump, Process: 2, By: -3 * d, From: process.None, To: process.None},
	})
	checkEqual(t, "limit", got.Limit, sim.Limit{Until: 100 * d, Events: 1000, Entries: 5, Warmup: 1})
	if got.Seed != 1<<64-1 || len(got.Judges) != 1 || s.About != "all that can be said" {
		t.Errorf("seed %d, %d judges, about %q", got.Seed, len(got.Judges), s.About)
	}
}

func checkEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sim.Delay{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const fine = "algorithm: lamport\nn: 3\nworkload:\n  commands: [{at: 1, acquire: 2}, {at: 2, acquire: 9, hold: 3}]\n"

// Each failed expectation is reported on its own line. Expectations that hold are not
// reported.
func TestUnmetExpectations(t *testing.T) {
	text := strings.Replace(fine, "9", "1", 1)
	for _, test := range []struct{ expect, want string }{
		{"{}", ""},
		{"{violation: none, reason: quiet, entries: 2, order: [2, 1], waiting: 0, inside: 0, refused: 0, messages: {REQ: 4}, messages-per-entry: 6}", ""},
		{"{violation: progress}", "violation: none, expected a violation of progress"},
		{"{violation: assertion}", "violation: none, expected an assertion"},
		{"{reason: stalled}", "the run ended by: quiet, expected stalled"},
		{"{entries: 3}", "entries: 2, expected 3"},
		{"{order: [1, 2]}", "order of entries: [2, 1], expected [1, 2]"},
		{"{messages: {REPLY: 3}}", "REPLY: 4, expected 3"},
		{"{messages-per-entry: 5.9}", "messages per entry: 6, expected 5.9"},
		{"{leader: 2}", "leader: none, expected 2"},
		{"{waiting: 1}", "waiting: 0, expected 1"},
	} {
		s, err := scenario.Parse("f.yaml", []byte(text+"expect: "+test.expect))
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.Unmet, "; "); got != test.want || o.Met() != (got == "") {
			t.Errorf("%s: %q, want %q", test.expect, got, test.want)
		}
	}
}

// An unexpected violation is reported, and all sinks receive the run.
func TestSinksAndViolations(t *testing.T) {
	text := strings.Replace(fine, "lamport", "maekawa-slides", 1)
	text = strings.Replace(text, "9", "1", 1) + "watch: [progress]\nfaults: [{at: 0, lose: any, count: 9}]"
	s, err := scenario.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var a, b counter
	o, err := s.Run(&a, &b)
	if err != nil {
		t.Fatal(err)
	}
	if o.Met() || len(o.Unmet) != 1 || !strings.Contains(o.Unmet[0], "wait forever") {
		t.Errorf("unmet: %q", o.Unmet)
	}
	if a == 0 || a != b || uint64(a) != o.Result.Records {
		t.Errorf("the sinks have seen %d and %d records of %d", a, b, o.Result.Records)
	}
}

type counter int

func (c *counter) Write(*trace.Record) error { *c++; return nil }

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	if _, err := scenario.Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, []byte("algorithm: lamport\nn: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Load(path); err == nil || !strings.HasPrefix(err.Error(), path+":2: ") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("#", 2<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Load(path); err == nil || !strings.Contains(err.Error(), "must have at most 1048576") {
		t.Errorf("%v", err)
	}
}

// For any text, the file is refused with the line of the error, or it can be run.
func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte(strings.Replace(fine, "9", "1", 1)))
	f.Add([]byte(fine))
	f.Add([]byte("algorithm: raymond\nlabels: [4, 5]\ntopology: {tree: {5: 4}}"))
	f.Add([]byte("algorithm: maekawa\nn: 4\ntopology: {quorums: grid}\nexpect: {leader: 1, order: [1]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := scenario.Parse("f.yaml", text)
		var where *scenario.Error
		if err != nil {
			if !errors.As(err, &where) || where.Line < 1 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("complaint without a place, or of several lines: %q", err)
			}
			return
		}
		if cfg := s.Config(); cfg.Validate() != nil {
			t.Fatalf("accepted, but refused by the simulator: %v", cfg.Validate())
		}
	})
}
