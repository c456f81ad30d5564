//go:build linux

package upgrade

import (
	"testing"

	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/vopr/mutants"
)

const (
	// future begins the names of the locks that the next release counts: from the level
	// that it brings on, they are acquired by an operation of their own, the count is in
	// the snapshot, and while one is held the level cannot be lowered.
	future = "future/"
	// newest is the level that the next release brings.
	newest = version.Max + 1
)

// next is the release after this one. Its formats have numbers that this tree does not
// read.
var next = mutants.Mutant{
	Name: "next",
	Edits: []mutants.Edit{{
		File: "internal/service/version/version.go", Old: "\tMax = 5\n", New: "\tMax = 6\n",
	}, {
		File: "internal/service/version/version.go", Old: "\t{Entry: 7, Snapshot: 7},\n", New: "\t{Entry: 7, Snapshot: 7},\n\t{Entry: 105, Snapshot: 105},\n",
	}, {
		File: "internal/service/registry/command.go", Old: "// Command is one step of the replicated state.",
		New: `// OpFuture is OpAcquire of a name that is counted.
const OpFuture Op = 100

func (c *Command) future() bool {
	return c.Op == OpAcquire && len(c.Name) > 7 && c.Name[:7] == "` + future + `"
}

// Command is one step of the replicated state.`,
	}, {
		File: "internal/service/registry/codec.go", Old: "\t\tb = batch.Commands[i].append(b, format)\n",
		New: "\t\tat := len(b)\n\t\tb = batch.Commands[i].append(b, format)\n\t\tif level > 5 && batch.Commands[i].future() {\n\t\t\tb[at] = byte(OpFuture)\n\t\t}\n",
	}, {
		File: "internal/service/registry/codec.go", Old: "\treadOp(r, c, format)\n",
		New: "\treadOp(r, c, format)\n\tif c.Op == OpFuture {\n\t\tc.Op = OpAcquire\n\t}\n",
	}, {
		File: "internal/service/registry/version.go", Old: "\tstay  bool\n", New: "\tstay  bool\n\tfuture uint64\n",
	}, {
		File: "internal/service/registry/version.go", Old: ", {version.Settings, (*Version).setting}}\n",
		New: `, {version.Settings, (*Version).setting}, {6, func(v *Version) string {
	list, _ := v.List(Lock, "` + future + `", "", 1, 0)
	if len(list) == 0 {
		return ""
	}
	return "the lock " + list[0].Name
}}}
`,
	}, {
		File: "internal/service/registry/cluster.go", Old: "\tr.level, r.stay = c.To, c.Stay\n",
		New: "\tr.level, r.stay, r.future = c.To, c.Stay, 0\n",
	}, {
		File: "internal/service/registry/registry.go", Old: "func (r *Registry) apply(term uint64, c *Command, fx *Effects) {\n",
		New: "func (r *Registry) apply(term uint64, c *Command, fx *Effects) {\n\tif r.level > 5 && c.future() {\n\t\tr.future++\n\t}\n",
	}, {
		File: "internal/service/registry/snapshot.go", Old: "\tb = wire.AppendBool(b, v.stay)\n",
		New: "\tb = wire.AppendBool(b, v.stay)\n\tif v.level > 5 {\n\t\tb = wire.AppendUint(b, v.future)\n\t}\n",
	}, {
		File: "internal/service/registry/snapshot.go", Old: "\tr.level, r.stay, r.epoch, r.counter,",
		New: "\tif r.level, r.stay = rd.Uint32(), rd.Bool(); r.level > 5 {\n\t\tr.future = rd.Uint()\n\t}\n\tr.epoch, r.counter,",
	}, {
		File: "internal/service/registry/snapshot.go", Old: "= rd.Uint32(), rd.Bool(), rd.Uint(), rd.Uint(),", New: "= rd.Uint(), rd.Uint(),",
	}},
}

// The release after this one is this tree with edits, which name lines of it.
func TestNextReleaseIsOfThisTree(t *testing.T) {
	if _, err := next.Overlay("../../..", t.TempDir()); err != nil {
		t.Error(err)
	}
}
