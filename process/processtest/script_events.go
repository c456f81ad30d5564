package processtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/conclave-io/conclave/process"
)

var clientKinds = map[string]process.Kind{
	"request": process.Acquire, "release": process.Release, "cancel": process.Cancel,
	"campaign": process.Campaign, "resign": process.Resign, "propose": process.Propose,
	"leave": process.Leave, "load": process.Load, "record": process.Record,
}

// client gives a command to the named processes. The host's duties are kept:
// no request of a process that waits or holds, no release of one that does not.
func (s *script) client(d *datadriven.TestData) error {
	procs, value, err := s.processesAnd(d, "value", 0)
	if err != nil {
		return err
	}
	for _, p := range procs {
		if err := p.allows(d.Cmd); err != nil {
			s.w.printf("%s %s: refused, it %s\n", s.w.name(p.id), d.Cmd, err)
			continue
		}
		ev := &process.Event{Kind: clientKinds[d.Cmd], Value: value}
		if err := s.w.happen(p, s.w.name(p.id)+" "+d.Cmd, ev); err != nil {
			return err
		}
	}
	return nil
}

// allows reports what forbids a command of the client, and notes it if nothing does.
func (p *proc) allows(command string) error {
	switch {
	case p.down:
		return errors.New("is down")
	case command == "request" && (p.waiting || p.inside):
		return errors.New("waits or holds already")
	case command == "release" && !p.inside:
		return errors.New("does not hold")
	case command == "cancel" && !p.waiting:
		return errors.New("does not wait")
	}
	switch command {
	case "request":
		p.waiting = true
	case "release":
		p.inside = false
	case "cancel":
		p.waiting = false
	}
	return nil
}

// fire lets a timer run out.
func (s *script) fire(d *datadriven.TestData) error {
	if len(d.CmdArgs) < 2 {
		return errors.New("fire needs a process and a timer")
	}
	p, err := s.process(d.CmdArgs[0].Key)
	if err != nil {
		return err
	}
	wanted := d.CmdArgs[1].Key
	for _, a := range d.CmdArgs[2:] {
		if a.Key != "about" || len(a.Vals) != 1 {
			return fmt.Errorf("fire takes about=PROCESS after the timer, not %s", a.Key)
		}
		wanted += "(" + a.Vals[0] + ")"
	}
	var armed []string
	for _, a := range p.timers {
		name := s.w.spec.TimerText(a.layer, a.timer, s.w.c)
		if name == wanted {
			return s.w.fire(p, a.timerKey)
		}
		armed = append(armed, name)
	}
	return fmt.Errorf("timer %s of %s is not armed, these are: [%s]", wanted, s.w.name(p.id), strings.Join(armed, " "))
}

// clock sets the local clocks of the named processes.
func (s *script) clock(d *datadriven.TestData) error {
	procs, value, err := s.processesAnd(d, "value", 0)
	for _, p := range procs {
		p.reading = process.Duration(value)
	}
	return err
}

// until lets time pass.
func (s *script) until(d *datadriven.TestData) error {
	if len(d.CmdArgs) != 1 {
		return errors.New("until needs a time in message delays")
	}
	delays, err := strconv.ParseInt(d.CmdArgs[0].Key, 10, 32)
	if err != nil {
		return fmt.Errorf("time %q is not a number of message delays", d.CmdArgs[0].Key)
	}
	end := process.Duration(delays) * s.w.c.D()
	for more := true; more && err == nil; {
		more, err = s.w.pass(end)
	}
	s.w.clock = max(s.w.clock, end)
	return err
}

// life is crash and restart.
func (s *script) life(d *datadriven.TestData) error {
	procs, sends, err := s.processesAnd(d, "sends", -1)
	if err != nil {
		return err
	}
	for _, p := range procs {
		if p.down != (d.Cmd == "restart") {
			return fmt.Errorf("cannot %s %s", d.Cmd, s.w.name(p.id))
		}
		if d.Cmd == "crash" {
			s.w.crash(p, int(sends))
			s.w.printf("%s crashes\n", s.w.name(p.id))
		} else if err := s.w.restart(p); err != nil {
			return err
		}
	}
	return nil
}

// forget replaces machines that are idle.
func (s *script) forget(d *datadriven.TestData) error {
	procs, above, err := s.processesAnd(d, "above", 0)
	if err != nil {
		return err
	}
	for _, p := range procs {
		if idle, err := s.w.forget(p, uint64(above)); err != nil || !idle {
			return errors.Join(err, fmt.Errorf("the machine of %s may not be forgotten", s.w.name(p.id)))
		}
	}
	return nil
}

// tell gives news about one process to everyone else alive, or to those named.
func (s *script) tell(d *datadriven.TestData) error {
	procs, err := s.processes(d)
	if err != nil || len(procs) != 1 {
		return errors.Join(err, fmt.Errorf("%s is about one process", d.Cmd))
	}
	about := procs[0]
	round, err := s.number(d, "round", 1)
	if err != nil {
		return err
	}
	ev := process.Event{Kind: process.KindByName(d.Cmd), Peer: about.id}
	if ev.Kind == process.Elected {
		ev.Term = process.MakeTerm(uint64(round), about.id)
	}
	if ev.Kind == process.Rejoin {
		ev.Incarnation = about.incarnation
	}
	listeners, err := s.listeners(d, about)
	if err != nil {
		return err
	}
	for _, p := range listeners {
		head := fmt.Sprintf("%s learns: %s %s", s.w.name(p.id), d.Cmd, s.w.name(about.id))
		if err := s.w.happen(p, head, &ev); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) listeners(d *datadriven.TestData, about *proc) ([]*proc, error) {
	i := slices.IndexFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == "at" })
	var listeners []*proc
	if i < 0 {
		for _, p := range s.w.procs {
			if !p.down && (p != about || d.Cmd == "elected") {
				listeners = append(listeners, p)
			}
		}
		return listeners, nil
	}
	for _, label := range d.CmdArgs[i].Vals {
		p, err := s.process(label)
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, p)
	}
	return listeners, nil
}

// show prints states, messages in flight, or how many were sent.
func (s *script) show(d *datadriven.TestData) error {
	switch d.Cmd {
	case "flight":
		for _, f := range s.w.flights {
			s.w.printf("%s\n", s.w.flightText(f))
		}
		return nil
	case "count":
		s.w.printCounts()
		return nil
	}
	procs, err := s.processes(d)
	if err != nil {
		return err
	}
	if len(procs) == 0 {
		procs = s.w.procs
	}
	for _, p := range procs {
		s.w.printState(p)
	}
	return nil
}

// printCounts prints messages sent in the order of their declaration.
func (w *world) printCounts() {
	total := 0
	for _, name := range w.spec.MessageNames() {
		if n := w.counts[name]; n > 0 {
			w.printf("%s %d ", name, n)
			total += n
		}
	}
	w.printf("= %d\n", total)
}

// printState prints the fields that differ from those of a new machine.
func (w *world) printState(p *proc) {
	w.printf("%s:", w.name(p.id))
	if p.down {
		w.printf(" down\n")
		return
	}
	fresh := process.View(w.spec.New(p.id, w.c), w.c)
	for _, change := range process.Diff(fresh, process.View(p.m, w.c)) {
		w.printf(" %s=%v", change.Name, change.After)
	}
	w.printf("\n")
}
