package registry

import (
	"fmt"
	"maps"
	"slices"
)

// listed is who holds and who waits for each lock.
func (w *walk) listed() map[string]string {
	all := make(map[string]string)
	list, _ := w.reg.Freeze().List(Lock, "", "", 1<<20, 1<<20)
	for _, res := range list {
		text := fmt.Sprint(res.QueueLength)
		for _, h := range res.Holders {
			text += fmt.Sprint(" ", h.Fence, h.Revoked)
		}
		all[res.Name] = text
	}
	return all
}

// checkNamed requires that each lock whose holders or queue changed is named: observers
// read only the named locks.
func (w *walk) checkNamed(before map[string]string, fx *Effects) {
	after := w.listed()
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if before[name] != after[name] && !slices.Contains(fx.Locks, name) {
			w.t.Fatalf("lock %q was %q and is %q; named are %q", name, before[name], after[name], fx.Locks)
		}
	}
}
