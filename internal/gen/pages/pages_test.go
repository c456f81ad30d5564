package pages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/process"
)

// What is in the repository is what make pages writes, and nothing is missing.
func TestPagesAreCurrent(t *testing.T) {
	wrong, err := Check("../../..", algorithm.All)
	if err != nil {
		t.Fatal(err)
	}
	others, err := CheckSingles("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Concat(wrong, others) {
		t.Error(line)
	}
}

var (
	lamport = algorithm.Find("lamport")
	raymond = algorithm.Find("raymond")
)

// repository is a small one, with two algorithms and their finished pages.
type repository struct {
	t     *testing.T
	root  string
	specs []*process.Spec
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t, t.TempDir(), []*process.Spec{lamport, raymond}}
	r.write("algorithm/mutex/lamport/lamport.go", "package lamport\n\nvar Spec = &process.Spec{\n\tName:  \"lamport\",\n}\n")
	for _, name := range []string{"lamport", "raymond"} {
		content, err := os.ReadFile("../../../lab/scenarios/mutex/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		r.write("lab/scenarios/mutex/"+name+".yaml", string(content))
	}
	r.make()
	for _, spec := range r.specs {
		for _, s := range sections {
			if s.prose {
				r.replace(pageOf(spec), "## "+s.title+"\n", "## "+s.title+"\n\nProse on "+s.title+".\n")
			}
		}
	}
	return r
}

func (r *repository) at(name string) string { return filepath.Join(r.root, filepath.FromSlash(name)) }

func (r *repository) write(name, content string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.at(name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.at(name), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) read(name string) string {
	r.t.Helper()
	content, err := os.ReadFile(r.at(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(content)
}

func (r *repository) replace(name, old, new string) {
	r.t.Helper()
	content := r.read(name)
	if !strings.Contains(content, old) {
		r.t.Fatalf("%s has no %q", name, old)
	}
	r.write(name, strings.Replace(content, old, new, 1))
}

func (r *repository) remove(name string) {
	r.t.Helper()
	if err := os.Remove(r.at(name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) make() []string {
	r.t.Helper()
	left, err := Write(r.root, r.specs)
	if err != nil {
		r.t.Fatal(err)
	}
	return left
}

// expect wants as many complaints as texts, each with one of them.
func (r *repository) expect(texts ...string) {
	r.t.Helper()
	wrong, err := Check(r.root, r.specs)
	if err != nil {
		r.t.Fatal(err)
	}
	ok := len(wrong) == len(texts)
	for _, text := range texts {
		ok = ok && slices.ContainsFunc(wrong, func(line string) bool { return strings.Contains(line, text) })
	}
	if !ok {
		r.t.Errorf("complaints are\n%s\nwant\n%s", strings.Join(wrong, "\n"), strings.Join(texts, "\n"))
	}
}

func TestFinishedPagesPass(t *testing.T) {
	r := newRepository(t)
	r.expect()
	page := r.read("docs/algorithms/lamport.md")
	for _, want := range []string{
		"# Lamport\n", "[algorithm/mutex/lamport](../../algorithm/mutex/lamport)", "| R5 | first in the queue,", "| REL(t, F) | t (clock), F (fence) | protocol |",
		"![Space-time diagram of a run of lamport](lamport.svg)", "conclave sim lab/scenarios/mutex/lamport.yaml --trace svg --out lamport.svg",
		"- happened-before order\n", `[D1] says 2(N-1), which is off: counts the`, "- duplication: the times on a link", "- L. Lamport: Time, Clocks",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if svg := r.read("docs/algorithms/lamport.svg"); !strings.Contains(svg, "REPLY t=3") {
		t.Error("the picture does not show the run")
	}
	if index := r.read(indexPage); !strings.Contains(index, "| [raymond](raymond.md) | Raymond's tree | messages per entry: 4(N-1)/N saturated") {
		t.Errorf("the index is\n%s", index)
	}
}

// Only the named algorithms get new pages, and the index links to these.
func TestNamedPages(t *testing.T) {
	r := newRepository(t)
	r.specs = append(r.specs, algorithm.Find("singhal"), algorithm.Find("central"))
	if _, err := Write(r.root, r.specs, "singhal"); err != nil {
		t.Fatal(err)
	}
	if index := r.read(indexPage); !strings.Contains(index, "(singhal.md)") || strings.Contains(index, "(central.md)") {
		t.Errorf("the index is\n%s", index)
	}
	if _, err := os.Stat(r.at(Folder + "/central.md")); err == nil {
		t.Error("central has a page")
	}
}

// Making pages again changes no byte, and never what people wrote.
func TestProseStays(t *testing.T) {
	r := newRepository(t)
	r.replace(pageOf(lamport), "## Messages\n", "## Messages\n\nA remark | with *signs*.  \n\n\n")
	before := r.read(pageOf(lamport))
	if left := r.make(); left != nil {
		t.Errorf("left to do: %q", left)
	}
	if diff := cmp.Diff(before, r.read(pageOf(lamport))); diff != "" {
		t.Error(diff)
	}
	r.replace(pageOf(lamport), "| R5 | first in the queue", "| R5 | last in the queue")
	r.replace(pageOf(lamport), "# Lamport\n", "# Someone\n")
	r.make()
	if diff := cmp.Diff(before, r.read(pageOf(lamport))); diff != "" {
		t.Error(diff)
	}
}

func TestDriftIsFound(t *testing.T) {
	stale := func(name string) string { return name + " is not what the Specs and scenarios say; run make pages" }
	page, svg := pageOf(lamport), pictureOf(lamport)
	for name, c := range map[string]struct {
		drift func(r *repository)
		want  []string
	}{
		"block edited":    {func(r *repository) { r.replace(page, "| R5 |", "| R9 |") }, []string{stale(page)}},
		"picture edited":  {func(r *repository) { r.replace(svg, "REPLY", "REPLYS") }, []string{stale(svg)}},
		"picture removed": {func(r *repository) { r.remove(svg) }, []string{stale(svg)}},
		"index edited":    {func(r *repository) { r.replace(indexPage, "lamport.md", "x.md") }, []string{stale(indexPage)}},
		"index removed":   {func(r *repository) { r.remove(indexPage) }, []string{"README.md is not there; run make pages"}},
		"new algorithm": {func(r *repository) { r.specs = append(r.specs, algorithm.Find("singhal")) },
			[]string{"docs/algorithms: no page for singhal; run make pages and write its prose"}},
		"algorithm removed": {func(r *repository) { r.specs = r.specs[:1] },
			[]string{stale(indexPage), "raymond.md belongs to no algorithm; remove it", "raymond.svg belongs to no algorithm; remove it"}},
		"stranger": {func(r *repository) { r.write(Folder+"/lamport.png", "") }, []string{"lamport.png belongs to no algorithm"}},
		"rule changed": {func(r *repository) {
			changed := *raymond
			changed.Rules = append(slices.Clone(raymond.Rules), process.RuleSpec{Name: "R99", Text: "a|b_c < d"})
			r.specs[1] = &changed
		}, []string{stale(pageOf(raymond))}},
		"run changed": {func(r *repository) {
			r.replace("lab/scenarios/mutex/lamport.yaml", "section: 2", "section: 3")
		}, []string{stale(svg)}},
		"run fails": {func(r *repository) {
			r.replace("lab/scenarios/mutex/lamport.yaml", "order: [1, 2]", "order: [2, 1]")
		}, []string{stale(page), `its run "lab/scenarios/mutex/lamport.yaml" does not come out as it says`}},
		"run removed": {func(r *repository) { r.remove("lab/scenarios/mutex/lamport.yaml") }, []string{stale(page), "is not there; write a small scenario"}},
		"run of another": {func(r *repository) {
			r.replace(page, "run lab/scenarios/mutex/lamport", "run lab/scenarios/mutex/raymond")
		},
			[]string{stale(page), "is of raymond; name another one"}},
		"run too big": {func(r *repository) {
			r.replace("lab/scenarios/mutex/lamport.yaml", "n: 3", "n: 12")
			r.replace("lab/scenarios/mutex/lamport.yaml", "  messages: {REQ: 4, REPLY: 4, REL: 4}\n  messages-per-entry: 6\n", "")
		}, []string{stale(svg), "makes a picture with 66 arrows"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.t = t
			c.drift(r)
			r.expect(c.want...)
		})
	}
}

func TestFaultsOfFormAreFound(t *testing.T) {
	page := pageOf(lamport)
	for want, edit := range map[string][2]string{
		`its section "Idea" is empty; write it`:                       {"Prose on Idea.\n", "<!-- nothing\nyet -->\n"},
		`its section "A run" is empty; write it`:                      {"Prose on A run.\n", "\n"},
		`its sections are ["Idea" "Rules" "Letters"`:                  {"## Messages\n", "## Letters\n"},
		`its section "Cost" should have the generated blocks ["cost`:  {"<!-- generated: cost -->\n", "<!-- generated: summary -->\n"},
		`above its first section there should be the generated block`: {"<!-- generated: summary -->\n", "<!-- generated: cost -->\n"},
		`there is no generated block "prize"`:                         {"<!-- generated: cost -->\n", "<!-- generated: prize -->\n"},
		`the line "<!-- end -->" is out of place`:                     {"<!-- generated: cost -->\n", "\n"},
		`the line "<!-- generated: cost" is out of place`:             {"<!-- generated: cost -->\n", "<!-- generated: cost\n"},
		`the line "<!-- generated: messages -->" is out of place`:     {"<!-- end -->\n\n## Messages\n", "\n\n## Messages\n"},
		`it does not begin with a title, a line "# Lamport"`:          {"# Lamport\n", "Lamport\n"},
	} {
		r := newRepository(t)
		r.replace(page, edit[0], edit[1])
		r.make()
		r.expect(want)
	}
	r := newRepository(t)
	text := r.read(page)
	r.write(page, text[:strings.LastIndex(text, splice.End)])
	r.expect("the block sources has no line")
}

// A layer that has a page of its own is named; the others are described.
func TestStacks(t *testing.T) {
	stack := &process.Spec{Name: "stack", Layers: []*process.Spec{raymond, lamport}}
	s := &site{paged: []*process.Spec{lamport}, runs: &runs{}}
	text := s.rules(stack)
	for _, want := range []string{"- Raymond's tree (`raymond`), see below\n- [Lamport](lamport.md#rules)\n", "### Layer raymond\n\n| rule |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the rules lack %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, lamport.Rules[0].Text) {
		t.Error("the rules of a layer with a page stand there again")
	}
}

func TestTextMeansItself(t *testing.T) {
	if got, want := escaped("a|b_c*d <e [f](g) `h`"), "a\\|b\\_c\\*d &lt;e \\[f\\](g) \\`h\\`"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A page is updated where its generated parts are out of date. The parts that people
// wrote stay as they are.
func TestSinglePages(t *testing.T) {
	r := &repository{t: t, root: t.TempDir()}
	r.write(guardsPage, "Prose.\n")
	r.write(referencesPage, "<!-- generated: papers -->\n<!-- end -->\n")
	r.write(brokenPage, "# Title\n\n<!-- generated: mutex -->\nold\n<!-- end -->\n\nProse.\n")
	if wrong, err := CheckSingles(r.root); err != nil || len(wrong) != 2 {
		t.Errorf("a drifted page: %q, %v", wrong, err)
	}
	if err := WriteSingles(r.root); err != nil {
		t.Fatal(err)
	}
	if wrong, err := CheckSingles(r.root); err != nil || len(wrong) != 0 {
		t.Errorf("after mending: %q, %v", wrong, err)
	}
	page := r.read(brokenPage)
	for _, want := range []string{"# Title\n", "\nProse.\n", "| [lamport](algorithms/lamport.md) | `no-tie-break`: ", "`conclave check lamport-no-tie-break -n 2 --entries 1` |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "bully") {
		t.Error("an election is among the others")
	}
	if page := r.read(referencesPage); !strings.Contains(page, "[doi:10.1145/359545.359563](https://doi.org/10.1145/359545.359563)") || !strings.Contains(page, "[lamport](algorithms/lamport.md)") || strings.Contains(page, "folklore") {
		t.Errorf("the references:\n%s", page)
	}
	r.write(brokenPage, "<!-- generated: index -->\n<!-- end -->\n")
	if _, err := CheckSingles(r.root); err == nil {
		t.Error("an unknown block passes")
	}
}
