package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "../../.."

// sample is quick to audit; make audit does all.
var sample = []string{"central-clock", "ricart-agrawala", "raymond", "chang-roberts"}

func audited(t *testing.T, names ...string) []Row {
	t.Helper()
	var specs []*process.Spec
	for _, name := range names {
		specs = append(specs, algorithm.Find(name))
	}
	rows, err := Run(t.Context(), specs, Default)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestPageIsCurrent fails when docs/assumptions.md or one of its scenarios is not what
// the checker finds; with LONG=1 it audits all algorithms, else some.
func TestPageIsCurrent(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/assumptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("LONG") != "" {
		sample = nil
		for _, s := range Audited(algorithm.All) {
			sample = append(sample, s.Name)
		}
	}
	rows := audited(t, sample...)
	entries := Entries(rows)
	for i := range rows {
		row := &rows[i]
		for _, text := range []string{entries[i].MatrixLine(), entries[i].SearchLines()} {
			if !strings.Contains(string(page), text) {
				t.Errorf("docs/assumptions.md is not what the checker finds now; run make audit. It lacks\n%s", text)
			}
		}
		for k := range row.Cells {
			for _, c := range row.Cells[k].all() {
				name, content := c.Scenario()
				if name == "" {
					continue
				}
				written, err := os.ReadFile(filepath.Join(root, Folder, name))
				if err != nil || !bytes.Equal(written, content) {
					t.Errorf("%s is not what the checker finds now; run make audit", name)
				}
			}
		}
	}
}

// TestSmallSearches makes the small searches of the audit for every algorithm: those that break a
// promise, or reach the top of the ladder, within a thousand states. Their lines, with exact counts,
// are on the page. So a change of what an algorithm does in unusual runs is seen without make audit.
func TestSmallSearches(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/assumptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	small := Default
	small.States = 1000
	rows, err := Run(t.Context(), Audited(algorithm.All), small)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for i := range rows {
		for k := range rows[i].Cells {
			for _, c := range rows[i].Cells[k].all() {
				if c.Result == nil || c.Result.Config.Timeouts > 0 || c.Beyond != nil || c.Few != nil ||
					c.Result.States >= small.States { // with more states, the audit goes further
					continue
				}
				made++
				var lines strings.Builder
				for _, cells := range c.searches() {
					line(&lines, append([]string{c.Spec.Name, c.Assumption.String()}, cells...))
				}
				if !strings.Contains(string(page), lines.String()) {
					t.Errorf("docs/assumptions.md is not what the checker finds now; run make audit. It lacks\n%s", lines.String())
				}
			}
		}
	}
	if made < 100 {
		t.Errorf("only %d searches were small", made)
	}
	t.Logf("%d searches", made)
}

// Every algorithm that can be audited has its lines on the page.
func TestPageHasAll(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/assumptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	specs := Audited(algorithm.All)
	if len(specs) < 15 {
		t.Errorf("only %d algorithms can be audited", len(specs))
	}
	for _, s := range specs {
		if !strings.Contains(string(page), "(algorithms/"+s.Name+".md)") {
			t.Errorf("docs/assumptions.md has no line for %s; run make audit", s.Name)
		}
	}
}

// Every scenario of the folder is linked from the page, and the simulator finds in it
// what the checker has found.
func TestScenariosReplay(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/assumptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, Folder, "*.yaml"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if !strings.Contains(string(page), "(../"+Folder+"/"+name+")") {
			t.Errorf("docs/assumptions.md does not link %s", name)
		}
		sc, err := scenario.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		o, err := sc.Run()
		if err != nil || !o.Met() {
			t.Errorf("%s: %v %v", name, err, o)
			continue
		}
		text, _ := os.ReadFile(file)
		ends := !strings.Contains(string(text), "goes on forever")
		if ends && (len(o.Result.Violations) == 0 || !strings.Contains(sc.About, o.Result.Violations[0].Text)) {
			t.Errorf("%s: the simulator finds %v, the checker %s", name, o.Result.Violations, sc.About)
		}
	}
}

// outcome is a cell, as far as few states show it.
func outcome(t *testing.T, name string, a Assumption) Cell {
	t.Helper()
	return One(t.Context(), algorithm.Find(name), a, Limits{States: 20_000, Depth: Default.Depth, Memory: Default.Memory})
}

// Known facts about some algorithms: which assumption they need, and what breaks without
// it.
func TestKnown(t *testing.T) {
	for _, want := range []struct {
		name   string
		a      Assumption
		is     Outcome
		broken string
	}{
		{"lamport", Nothing, Proved, ""},
		{"lamport", FIFO, Violated, "mutual exclusion"},
		{"ricart-agrawala", FIFO, Proved, ""},
		{"ricart-agrawala", NoLoss, Violated, "progress"},
		{"raymond", NoDuplication, Violated, "assertion"},
		{"maekawa", NoDuplication, Violated, "mutual exclusion"},
		{"suzuki-kasami", NoCrash, Violated, "progress"},
		{"bully", BoundedDelay, Violated, "valid leader"},
		{"ricart-agrawala", BoundedDelay, NotApplicable, ""},
		{"ricart-agrawala", UniqueLabels, NotApplicable, ""},
		{"bully", UniqueLabels, Proved, ""},
		{"ring-active-list", UniqueLabels, Proved, ""},
		{"by-load-ring", UniqueLabels, Proved, ""},
		{"super-peer", Nothing, NotAudited, ""},
		{"central-recovering", BoundedDelay, Violated, "mutual exclusion"},
		{"central-swim", CorrectDetector, NotApplicable, ""},
		{"ricart-agrawala", CorrectDetector, Violated, "happened-before order"},
		{"maekawa", CorrectDetector, NotApplicable, ""},
	} {
		c := outcome(t, want.name, want.a)
		if c.Outcome != want.is || want.broken != "" && c.broken() != want.broken {
			t.Errorf("%s without %s: %s, want %s %s", want.name, want.a, c.Verdict(), want.is, want.broken)
		}
		if (c.Outcome == NotApplicable || c.Outcome == NotAudited) != (c.Why != "") {
			t.Errorf("%s without %s: %s because %q", want.name, want.a, c.Outcome, c.Why)
		}
	}
}

// Each pair of processes has equal labels in one of the searches, and equal loads too.
func TestEqualLabels(t *testing.T) {
	var seen []string
	for _, cfg := range Default.configs(algorithm.Find("by-load"), UniqueLabels, step{3, 1}) {
		if !slices.Equal(cfg.Loads, []int64{0, 0, 0}) {
			t.Errorf("loads are %v", cfg.Loads)
		}
		seen = append(seen, fmt.Sprint(cfg.Process.ElectionLabels))
	}
	if want := []string{"[2 2 3]", "[3 2 3]", "[1 3 3]"}; !slices.Equal(seen, want) {
		t.Errorf("labels are %q, want %q", seen, want)
	}
}

// The matrix shows that algorithms which identify processes by rank have no rule that
// reads a label.
func TestRanksOnly(t *testing.T) {
	read := 0
	for _, folder := range []string{"mutex", "multicast", "agreement", "transaction", "detector", "deadlock"} {
		err := filepath.WalkDir(filepath.Join(root, "algorithm", folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			for _, use := range []string{".Above(", ".Label(", ".Labels", ".ElectionLabels"} {
				if strings.Contains(string(text), use) {
					t.Errorf("%s has %s, so labels matter", file, use)
				}
			}
			read++
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range Audited(algorithm.All) {
		for i := range s.Depth() {
			if f := s.Layer(uint8(i)).Family; !comparesLabels(s) && f != process.Mutex && f != process.Multicast && f != process.Agreement && f != process.Transaction && f != process.Detector && f != process.Deadlock {
				t.Errorf("%s has a layer for %s, which was not read", s.Name, f)
			}
		}
	}
	if read < 20 {
		t.Errorf("%d files were read", read)
	}
}

// If a secondary promise is broken, the cell also says whether the core promise holds.
func TestCore(t *testing.T) {
	for _, want := range []struct {
		name    string
		a       Assumption
		verdict string // of the core promise
		kind    int
	}{
		{"raymond", NoLoss, "safe 4x1", 4},
		{"ricart-agrawala", CorrectDetector, "mutual exclusion, 6 steps", 5},
	} {
		c := outcome(t, want.name, want.a)
		if c.Core == nil || c.Core.Verdict() != want.verdict || c.kind() != want.kind {
			t.Errorf("%s without %s: %s; %+v", want.name, want.a, c.Verdict(), c.Core)
		}
	}
	if c := outcome(t, "maekawa", NoDuplication); c.Core != nil {
		t.Errorf("maekawa without %s: %s alone is %s, but that is what broke", NoDuplication, c.Core.only, c.Core.Verdict())
	}
}

// Endless heartbeats neither delay a timer nor hide that a process waits forever. The
// ring replaces a lost token. A coordinator that waits in its own queue has no timer, and
// a lost RELEASE is not sent again.
func TestLoopsOfHeartbeats(t *testing.T) {
	for _, name := range []string{"token-ring-recovering", "token-ring-swim"} {
		if c := outcome(t, name, NoLoss); c.Verdict() != "proved 2x1" || c.kind() != 0 || c.notLive() != "" {
			t.Errorf("%s: %s, %q", name, c.Verdict(), c.notLive())
		}
	}
	for _, name := range []string{"central-recovering", "central-swim", "singhal"} {
		c := outcome(t, name, NoLoss)
		if c.Outcome != Violated || c.broken() != "progress" || c.Result.Path.Loop < 0 || c.kind() != 4 {
			t.Errorf("%s: %s, but it waits forever", name, c.Verdict())
		}
	}
}

// A search with few timeouts is never called proved, and the page says why it is not
// live; the tally counts every cell once.
func TestBoundedIsVisible(t *testing.T) {
	var rows []Row
	for _, name := range []string{"central-swim", "majority", "raymond"} {
		row := Row{algorithm.Find(name), make([]Cell, len(Assumptions))}
		for i := range row.Cells {
			row.Cells[i] = Cell{Spec: row.Spec, Assumption: Assumptions[i], Outcome: NotApplicable}
		}
		row.Cells[0], row.Cells[1] = outcome(t, name, Nothing), outcome(t, name, NoCrash)
		rows = append(rows, row)
	}
	swim, majority, raymond := &rows[0].Cells[1], &rows[1].Cells[0], &rows[2].Cells[0]
	for _, c := range []*Cell{swim, majority} {
		if !strings.HasPrefix(c.Verdict(), "safe ") || c.notLive() == "" || c.kind() == 0 {
			t.Errorf("%s: %s, %q", c.Spec.Name, c.Verdict(), c.notLive())
		}
	}
	if swim.Verdict() != "safe 2x1 in 5 timeouts" || swim.Cut == nil || swim.kind() != 2 {
		t.Errorf("central-swim: %s, cut %v", swim.Verdict(), swim.Cut)
	}
	if raymond.Verdict() != "proved 4x1" || raymond.notLive() != "" || raymond.kind() != 0 {
		t.Errorf("raymond: %s, %q", raymond.Verdict(), raymond.notLive())
	}
	var b strings.Builder
	tally(&b, Entries(rows))
	for _, line := range strings.Split(b.String(), "\n")[5:] {
		sum := 0
		for _, field := range strings.Split(line, "|") {
			n, _ := strconv.Atoi(strings.TrimSpace(field))
			sum += n
		}
		if line != "" && sum != len(rows) {
			t.Errorf("%d cells in %s, want %d", sum, line, len(rows))
		}
	}
}

// A promise that a Spec makes without an assumption, and that breaks, is marked.
func TestRefuted(t *testing.T) {
	spec := *algorithm.Find("raymond")
	spec.Claims.Survives = []process.Survival{{Fault: process.Duplication, How: "it does not"}}
	c := One(t.Context(), &spec, NoDuplication, Default)
	if !c.Refuted() || !strings.Contains(c.markdown(), "**(!)**") {
		t.Errorf("%s, refuted %v", c.markdown(), c.Refuted())
	}
	if c := outcome(t, "raymond", NoDuplication); c.Refuted() {
		t.Error("raymond does not claim to survive a duplicate")
	}
}

// No promise of a Spec breaks without an assumption that the Spec does not need.
func TestNothingIsRefuted(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/assumptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(page), "## Mutual exclusion")
	for _, line := range strings.Split(tables, "\n") {
		if strings.Contains(line, "**(!)**") {
			t.Error(line)
		}
	}
}

// A search that does not finish on the lowest step is bounded, and says how far it got.
func TestLimit(t *testing.T) {
	c := One(t.Context(), algorithm.Find("lamport"), Nothing, Limits{States: 10, Depth: 3, Memory: Default.Memory})
	if c.Outcome != Bounded || c.Beyond == nil || c.Result != nil || c.Verdict() != "bounded" {
		t.Errorf("%s, %v, %v", c.Verdict(), c.Result, c.Beyond)
	}
}

// New scenarios replace those of an earlier audit. Other files stay.
func TestWriteScenarios(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"raymond-fifo.yaml":                   "algorithm: raymond\nabout: \"found by the model checker (N=2): progress\"\n",
		"raymond-crash-mutual-exclusion.yaml": "algorithm: raymond\nabout: \"found by the model checker (N=2): mutual exclusion\"\n",
		"raymond-delay.yaml":                  "algorithm: raymond\nabout: mine\n",
		"lamport-fifo.yaml":                   "algorithm: lamport\nabout: \"found by the model checker (N=2): progress\"\n",
		"mine.yaml":                           "",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteScenarios(audited(t, "raymond"), folder); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"lamport-fifo.yaml", "mine.yaml", "raymond-crash.yaml", "raymond-delay.yaml", "raymond-duplication.yaml", "raymond-loss.yaml"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// TestMerge: an entry replaces that of the same algorithm, and has its place in the order of all.
func TestMerge(t *testing.T) {
	entries := written(t)
	for _, e := range Entries(audited(t, "central-clock", "raymond", "chang-roberts")) {
		old := entries[slices.IndexFunc(entries, func(o Entry) bool { return o.Algorithm == e.Algorithm })]
		if diff := cmp.Diff(old, e); diff != "" {
			t.Errorf("docs/assumptions.json is not what the checker finds now; run make audit:\n%s", diff)
		}
		without := slices.DeleteFunc(slices.Clone(entries), func(o Entry) bool { return o.Algorithm == e.Algorithm })
		for _, old := range [][]Entry{entries, without} {
			if diff := cmp.Diff(entries, Merge(old, []Entry{e})); diff != "" {
				t.Errorf("%s: %s", e.Algorithm, diff)
			}
		}
	}
}

// written returns the entries of docs/assumptions.json.
func written(t *testing.T) (entries []Entry) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "docs/assumptions.json"))
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestPage: docs/assumptions.md is what is written from its data.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/assumptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Markdown(&b, written(t), Default); err != nil || b.String() != string(page) {
		t.Errorf("run make audit: %v\n%s", err, cmp.Diff(string(page), b.String()))
	}
}
