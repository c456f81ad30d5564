package keeps

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/guard"
)

func lock(name string, fence uint64) conclave.Kept {
	return conclave.Kept{Cluster: "c0ffee", Name: name, Fence: fence}
}

// The environment of the command was scrubbed; those of its ancestors still have the holds.
func TestHoldsOfAncestors(t *testing.T) {
	a, b, c := lock("a", 1), lock("b", 2), lock("c", 3)
	above := []guard.Ancestor{
		{PID: 50, Environ: []string{"HOME=/"}},
		{PID: 40, Environ: []string{Setting([]conclave.Kept{a, b})}},
		{PID: 30, Environ: []string{Setting([]conclave.Kept{a})}},
		{PID: 20, Hidden: true},
		{PID: 10, Environ: []string{Variable + "=nonsense"}},
	}
	h := inherit([]conclave.Kept{c}, above, true)
	if diff := cmp.Diff([]conclave.Kept{a, b, c}, h.Holds); diff != "" {
		t.Error(diff)
	}
	for k, want := range map[conclave.Kept]bool{
		a: true, lock("a", 2): false, lock("d", 1): false, {Cluster: "c0ffee", Election: true, Name: "a", Fence: 1}: false, {Cluster: "another", Name: "a", Fence: 1}: false,
	} {
		if got := h.Has(k); got != want {
			t.Errorf("%+v: got %v", k, got)
		}
	}
	if !h.Names(false, "b") || h.Names(true, "b") || h.Names(false, "d") {
		t.Error("the names of the holds are wrong")
	}
}

// A holder with the pid of an ancestor may be that ancestor only if something between them is hidden.
func TestPerhapsAnAncestor(t *testing.T) {
	above := []guard.Ancestor{{PID: 50}, {PID: 40}, {PID: 30, Hidden: true}, {PID: 20}, {PID: 1, Hidden: true}}
	h := inherit(nil, above, true)
	for pid, want := range map[int64]bool{50: false, 40: false, 30: false, 20: true, 1: true, 99: false} {
		if got := h.hides(pid); got != want {
			t.Errorf("pid %d: got %v, want %v", pid, got, want)
		}
	}
	h.complete = false
	if !h.hides(99) {
		t.Error("where the system hides ancestors, each holder on this host may be one")
	}
	if h.Perhaps("a host of another name", 20) {
		t.Error("a process on another host may be an ancestor")
	}
}

func TestList(t *testing.T) {
	all := []guard.Process{{PID: 1, Name: "a"}, {PID: 2, Name: "b"}, {PID: 3, Name: "c"}, {PID: 4, Name: "d"}, {PID: 5, Name: "e"}, {PID: 6, Name: "f"}}
	for n, want := range map[int]string{
		1: "process 1 (a)", 2: "processes 1 (a) and 2 (b)", 5: "processes 1 (a), 2 (b), 3 (c), 4 (d) and 5 (e)",
		6: "processes 1 (a), 2 (b), 3 (c), 4 (d), 5 (e) and 1 more",
	} {
		if got := List(all[:n]); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
