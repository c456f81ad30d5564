package founding

import (
	"reflect"
	"testing"
)

func machine(d Disk) *Machine {
	m := new(Machine)
	m.Load(d)
	return m
}

func founder(id uint64, r Record) Disk {
	return Disk{Server: Server{ID: id, UID: id * 10, Founders: []uint64{1, 2, 3}, Record: r}}
}

// does requires that a machine takes these steps, and then waits.
func does(t *testing.T, m *Machine, steps ...Step) {
	t.Helper()
	for _, want := range append(steps, Wait) {
		if got := m.Step(0); got.Step != want {
			t.Fatalf("%+v, want step %d", got, want)
		}
	}
}

func TestMachineFounds(t *testing.T) {
	r := record(10, 20, 30)
	m := new(Machine)
	if got := m.Says(); got.Phase != NotReady {
		t.Errorf("before it has read its directory it says %+v", got)
	}
	does(t, m)
	m.Load(founder(1, nil))
	does(t, m)
	m.Hear(2, Answer{UID: 20, Phase: New})
	m.Hear(3, Answer{UID: 30, Phase: New})
	does(t, m, Write)
	if got := m.Says(); got.Phase != New || got.Record != nil {
		t.Errorf("it tells of a record that is not on its disk: %+v", got)
	}
	m.Written(true)
	if got := m.Step(0); !got.Introduce || got.Step != Wait {
		t.Errorf("with the record on its disk: %+v, want that it tells the others", got)
	}
	m.Hear(2, Answer{UID: 20, Phase: Recorded, Record: r})
	m.Hear(2, Answer{UID: 20, Phase: New}) // late
	m.Hear(3, Answer{UID: 30, Phase: Recorded, Record: r})
	does(t, m, Found)
	if got := m.Says(); got.Phase != Recorded {
		t.Errorf("it tells of state that is not on its disk: %+v", got)
	}
	m.Gained()
	if got, want := m.Step(0), (Action{Introduce: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("with state on its disk: %+v, want %+v", got, want)
	}
	if got, want := m.Says(), (Answer{UID: 10, Phase: Founded, Record: r}); !reflect.DeepEqual(got, want) {
		t.Errorf("in the end it says %+v, want %+v", got, want)
	}
}

// TestMachineForgetsTheNew: a server that is new and goes may come back with a record.
func TestMachineForgetsTheNew(t *testing.T) {
	m := machine(founder(1, nil))
	m.Hear(2, Answer{UID: 20, Phase: New})
	m.Hear(3, Answer{UID: 30, Phase: New})
	if !m.Lose(3) {
		t.Error("a new server that has gone is not forgotten")
	}
	does(t, m)
	m.Hear(2, Answer{UID: 20, Phase: Recorded, Record: record(10, 20, 30)})
	if m.Lose(2) {
		t.Error("a server that holds a record is forgotten")
	}
	does(t, m, Write)
}

// TestMachineTakesTheRecordOver: a server that joined, or that lost the file with its
// record, adopts the record of another. So it can recognize a founder that lost its data.
func TestMachineTakesTheRecordOver(t *testing.T) {
	r := record(10, 20, 30)
	for name, d := range map[string]Disk{
		"joined":           {Server: Server{ID: 4, UID: 40}, Joined: true},
		"lost that file":   {Server: Server{ID: 3, UID: 30, Founders: []uint64{1, 2, 3}}, State: true},
		"joined, has come": {Server: Server{ID: 4, UID: 40}, Joined: true, State: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(d)
			does(t, m, Resume)
			if got := m.Says(); got.Phase != NotReady {
				t.Errorf("without a record it says %+v", got)
			}
			m.Hear(2, Answer{UID: 20, Phase: Founded, Record: r})
			does(t, m, Write)
			m.Written(false)
			does(t, m)
			m.Hear(2, Answer{UID: 20, Phase: Founded, Record: r})
			does(t, m, Write)
			m.Written(true)
			does(t, m)
			if got := m.Says(); !got.Record.Equal(r) {
				t.Errorf("with the record it says %+v", got)
			}
		})
	}
}

func TestMachineIsRefused(t *testing.T) {
	m := machine(founder(1, nil))
	if m.Refused(2, Misfit, 2, false) {
		t.Error("one of two others makes it stop")
	}
	m.Hear(2, Answer{UID: 20, Phase: New})
	if m.Refused(3, Misfit, 2, false) {
		t.Error("a refusal counts that was taken back")
	}
	if !m.Refused(2, Unknown, 2, false) || m.Refused(2, Unknown, 2, true) {
		t.Error("two of two others must make it stop, unless it has served")
	}
	if !m.Refused(2, Removed, 2, true) {
		t.Error("a removed server goes on")
	}
	j := machine(Disk{Server: Server{ID: 4, UID: 40}, Joined: true})
	if j.Refused(1, Unknown, 1, false) || !j.Refused(1, Misfit, 1, false) {
		t.Error("a server that joined goes on if it is unknown, and only then")
	}
}

// Of two processes with the same data, the later one stops at its first refusal. The earlier one
// stops when no other server is left that may be connected with it.
func TestOneOfTwoProcessesStops(t *testing.T) {
	later := machine(founder(1, nil))
	if !later.Refused(2, Copied, 4, true) {
		t.Error("the later process goes on")
	}
	earlier := machine(founder(1, nil))
	for by := range uint64(3) {
		if earlier.Refused(2+by, Superseded, 4, true) {
			t.Errorf("the earlier one stops after %d refusals of 4", by+1)
		}
	}
	earlier.Hear(2, Answer{UID: 20, Phase: New}) // it dials this server, which does not show that it accepts it
	earlier.Welcomed(3)
	if earlier.Refused(5, Superseded, 4, true) {
		t.Error("the earlier one stops though one other accepts it")
	}
	if !earlier.Refused(3, Superseded, 4, true) {
		t.Error("the earlier one goes on though all others refuse it")
	}
}

// TestMachineTellsOfAWait: once, when it is long, and again when it changes.
func TestMachineTellsOfAWait(t *testing.T) {
	m := machine(founder(1, nil))
	told := func(now int64) bool { return m.Step(now).Tell }
	if told(0) || told(briefWait-1) || !told(briefWait) || told(3*briefWait) {
		t.Error("a wait is not told once, when it is long")
	}
	m.Hear(2, Answer{UID: 20, Phase: New})
	if told(3*briefWait) || !told(4*briefWait) {
		t.Error("that a wait changed is not told when it is long")
	}
}

// TestMachineTellsOfNoWaitAfterItsStart: a founder that has waited, and long afterwards meets the others
// again, waits for nobody.
func TestMachineTellsOfNoWaitAfterItsStart(t *testing.T) {
	m := machine(founder(1, nil))
	m.Step(0)
	if !m.Step(briefWait).Tell {
		t.Fatal("it has not told of its wait")
	}
	r := record(10, 20, 30)
	m.Hear(2, Answer{UID: 20, Phase: Recorded, Record: r})
	m.Hear(3, Answer{UID: 30, Phase: Recorded, Record: r})
	does(t, m, Write)
	m.Written(true)
	does(t, m, Found)
	m.Gained()
	for now := int64(2 * briefWait); now < 10*briefWait; now += briefWait / 2 {
		if a := m.Step(now); a.Tell {
			t.Fatalf("at %d ms it tells of a wait for %v", now/1e6, a.Missing)
		}
	}
}

// TestMachineTakesStrangers: without a log, a server has only those that it was told of.
func TestMachineTakesStrangers(t *testing.T) {
	r := record(10, 20, 30)
	stranger := Answer{UID: 40, Phase: Founded, Record: r}
	for name, c := range map[string]struct {
		m      *Machine
		answer Answer
		want   bool
	}{
		"before it has read its disk":     {new(Machine), stranger, false},
		"before it knows the record":      {machine(founder(3, nil)), stranger, false},
		"with the same record":            {machine(founder(3, r)), stranger, true},
		"with another record":             {machine(founder(3, record(10, 20, 31))), stranger, false},
		"which has no state":              {machine(founder(3, r)), Answer{UID: 40, Phase: Recorded, Record: r}, false},
		"with the same record, if joined": {machine(Disk{Server: Server{ID: 5, UID: 50, Record: r}, Joined: true}), stranger, true},
	} {
		if got := c.m.Takes(c.answer); got != c.want {
			t.Errorf("a stranger, %s: taken %v, want %v", name, got, c.want)
		}
	}
}
