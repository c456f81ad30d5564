package processtest

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// slow lets its client in after a while, and may send the token on when it leaves.
type slow struct {
	self    process.ID
	n       int
	waiting bool
}

func (m *slow) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		m.waiting = true
		fx.Arm(1, 1, 1)
	case process.Fire:
		m.waiting = false
		fx.Grant(1)
	case process.Release:
		fx.Send((m.self+1)%process.ID(m.n), process.Message{Type: 1})
	}
}

func (m *slow) Fields(f *process.Fields) { f.Bool("waiting", &m.waiting) }

func slowSpec(message string, survives ...process.Survival) *process.Spec {
	return &process.Spec{
		Name: "slow", Family: process.Mutex, Messages: []process.MessageSpec{{Name: message}}, Timers: []string{"t"},
		Options: []process.Option{{Name: "mode", Default: "a", Values: []string{"a", "b"}}},
		Claims:  process.Claims{Survives: survives},
		New:     func(self process.ID, c *process.Config) process.Machine { return &slow{self: self, n: c.N} },
	}
}

// crashed returns which kinds of processes crash in runs of a mode.
func crashed(t *testing.T, spec *process.Spec, mode string) (kinds []process.Fault) {
	t.Helper()
	for seed := range int64(200) {
		r, err := newRun(spec, []process.OptionValue{{Name: "mode", Value: mode}}, 3, seed, true)
		if err == nil {
			err = r.w.start()
		}
		token := process.None
		if spec.Messages[0].Name == "TOKEN" {
			token = r.w.c.Topology.Coordinator
		}
		for i := 0; i < actions && err == nil; i++ {
			before := make([]proc, len(r.w.procs))
			for p := range before {
				before[p] = *r.w.procs[p]
			}
			underWay := len(r.w.flights)
			err = r.act()
			for p := range before {
				if !before[p].down && r.w.procs[p].down {
					kinds = append(kinds, kindOf(&before[p], token))
				}
			}
			if token != process.None && len(r.w.flights) > underWay {
				token = r.w.flights[underWay].msg.To
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func kindOf(p *proc, token process.ID) process.Fault {
	switch {
	case p.id == token:
		return process.CrashSpecial
	case p.inside:
		return process.CrashHolder
	case p.waiting:
		return process.CrashWaiter
	}
	return process.CrashBystander
}

// TestConformCrashesWhoMayCrash: only processes crash whose crash the Spec claims to
// survive in the mode, and each claimed kind of process does.
func TestConformCrashesWhoMayCrash(t *testing.T) {
	bystander := process.Survival{Fault: process.CrashBystander}
	waiter := process.Survival{Fault: process.CrashWaiter, Mode: "b"}
	holder := process.Survival{Fault: process.CrashHolder, Mode: "a"}
	anybody := process.Survival{Fault: process.CrashAny}
	for _, c := range []struct {
		spec *process.Spec
		mode string
		want []process.Fault
	}{
		{slowSpec("PING"), "a", nil},
		{slowSpec("PING", bystander), "a", []process.Fault{process.CrashBystander}},
		{slowSpec("PING", waiter, holder), "a", []process.Fault{process.CrashHolder}},
		{slowSpec("PING", waiter, holder), "b", []process.Fault{process.CrashWaiter}},
		{slowSpec("PING", anybody), "b", []process.Fault{process.CrashBystander, process.CrashWaiter, process.CrashHolder}},
		{slowSpec("TOKEN", bystander), "a", []process.Fault{process.CrashBystander}},
		{slowSpec("TOKEN", anybody), "a", []process.Fault{process.CrashBystander, process.CrashWaiter, process.CrashHolder, process.CrashSpecial}},
	} {
		if got := crashed(t, c.spec, c.mode); !slices.Equal(got, c.want) {
			t.Errorf("%s, mode %s, %v: crashed %v, want %v", c.spec.Messages[0].Name, c.mode, c.spec.Claims.Survives, got, c.want)
		}
	}
}
