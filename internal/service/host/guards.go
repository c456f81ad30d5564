package host

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// guard is what the log says now about one prefix. An epoch has the guards of its START, but a
// drain takes effect at once (V2).
type guard struct {
	view.Guard
	busy int    // names under it that are held or asked for
	said uint64 // the change for which quiet was sent in this epoch, or 0
}

// guards are the present guards of all prefixes, as the log has them. Each counts the names under it
// that are busy at this server (G3, G4).
type guards struct {
	*self
	list   []guard
	number uint32 // of the list, for what instances keep of it
}

// reset forgets the guards.
func (g *guards) reset() {
	g.list = nil
	g.number++
}

// set takes over the present guards, and reports whether they have changed. Then no name is counted
// under them yet.
func (g *guards) set(now []view.Guard) (changed bool) {
	same := slices.EqualFunc(g.list, now, func(a guard, b view.Guard) bool {
		return a.Prefix == b.Prefix && a.Use == b.Use && a.Change == b.Change && a.New == b.New && a.Conditions == b.Conditions
	})
	if same {
		return false
	}
	old := g.list
	g.list = make([]guard, len(now))
	for i := range now {
		g.list[i].Guard = now[i]
		if at := slices.IndexFunc(old, func(o guard) bool { return o.Prefix == now[i].Prefix }); at >= 0 {
			g.list[i].said = old[at].said
		}
	}
	g.number++
	return true
}

// begin begins an epoch: what was said in another one has to be said again.
func (g *guards) begin() {
	for i := range g.list {
		g.list[i].said = 0
	}
}

// of returns the present guard of an instance, or nil.
func (g *guards) of(in *instance) *guard {
	if in.table != g.number {
		in.table, in.under = g.number, int32(g.index(in.name))
	}
	return g.at(int(in.under))
}

// find returns the present guard of a name, or nil.
func (g *guards) find(name string) *guard { return g.at(g.index(name)) }

// index returns the index of the present guard of a name, or -1.
func (g *guards) index(name string) int {
	at := -1
	for i := range g.list {
		o := &g.list[i]
		if strings.HasPrefix(name, o.Prefix) && (at < 0 || len(o.Prefix) > len(g.list[at].Prefix)) {
			at = i
		}
	}
	return at
}

func (g *guards) at(index int) *guard {
	if index < 0 {
		return nil
	}
	return &g.list[index]
}

// drains reports whether nothing more may be granted of the name (G3).
func (g *guards) drains(in *instance) bool {
	o := g.of(in)
	return o != nil && o.Change != 0
}

// count counts a name under its guard if it is held or requested.
func (g *guards) count(in *instance) {
	if busy := !g.member.Quiet(&in.state); busy != in.busy {
		in.busy = busy
		if o := g.of(in); o != nil && busy {
			o.busy++
		} else if o != nil {
			o.busy--
		}
	}
}

// sayQuiet is G4.
func (g *guards) sayQuiet(seat *seat) {
	for i := range g.list {
		o := &g.list[i]
		if o.Change != 0 && o.Use.Guarded() && o.said != o.Change && o.busy == 0 && g.member.State != view.Out {
			o.said = o.Change
			seat.order(registry.Command{Op: registry.OpQuiet, Guarding: &registry.Guarding{Epoch: g.member.Epoch, Change: o.Change}})
		}
	}
}
