package scenario_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
	"github.com/conclave-io/conclave/process"
)

// records keeps all records of a run.
type records []trace.Record

func (r *records) Write(record *trace.Record) error {
	*r = append(*r, *record)
	return nil
}

// In every scenario, each record that is described from the journal is the one that the
// simulator writes.
func TestJournalDescribesEveryScenario(t *testing.T) {
	for _, path := range files(t) {
		t.Run(strings.TrimPrefix(path, folder+"/"), func(t *testing.T) {
			s, err := scenario.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			kept, full := &journal.Journal{}, records{}
			run, err := s.Begin(kept, &full)
			if err != nil {
				t.Fatal(err)
			}
			for run.Step() {
			}
			compare(t, kept, full)
			readBack(t, kept)
			compareFlights(t, kept, full, run.World.Config())
		})
	}
}

// readBack writes the journal to a file and reads it again.
func readBack(t *testing.T, kept *journal.Journal) {
	t.Helper()
	file := kept.Append(nil)
	read, err := journal.Decode(file, algorithm.Find)
	if err != nil {
		t.Fatal(err)
	}
	last := kept.Len()
	if !bytes.Equal(read.Append(nil), file) || !bytes.Equal(read.AppendColumns(nil, 1, last, 0), kept.AppendColumns(nil, 1, last, 0)) {
		t.Error("the journal that was read is not the one that was written")
	}
}

// way is where a message was sent, where it ended, and how.
type way struct {
	sender, end int
	to          process.ID
	lost, copy  bool
}

// compareFlights compares the flights of a journal with those that the records tell of.
func compareFlights(t *testing.T, kept *journal.Journal, full records, c *process.Config) {
	t.Helper()
	got, want := map[way]int{}, waysOf(full, c)
	b := kept.AppendColumns(nil, 1, 0, 0)
	n := kept.Flights()
	for i := range n {
		fate := journal.Fate(b[11*n+i])
		got[way{
			sender: int(binary.LittleEndian.Uint32(b[4*i:])), end: int(binary.LittleEndian.Uint32(b[4*n+4*i:])),
			to: process.ID(binary.LittleEndian.Uint16(b[8*n+2*i:])), lost: fate&^journal.Copy == journal.Lost, copy: fate&journal.Copy != 0,
		}]++
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the flights are\n%v\nand the records tell of\n%v", got, want)
	}
}

// waysOf follows every message by its text. Of equal messages, the one that was sent
// first ends first.
func waysOf(full records, c *process.Config) map[way]int {
	type alike struct {
		sender uint64
		to     process.Label
		text   string
	}
	flying := map[alike][]way{}
	ways := map[way]int{}
	send := func(r *trace.Record, to process.Label, text string, copied bool) {
		a := alike{r.ID, to, text}
		if copied {
			a.sender = r.Cause
		}
		flying[a] = append(flying[a], way{sender: int(a.sender), to: c.Rank(to), copy: copied})
	}
	for i := range full {
		r := &full[i]
		for k := range r.Effects {
			if e := &r.Effects[k]; !e.Internal && (e.Kind == "send" || e.Kind == "broadcast") {
				for _, to := range receivers(e, c) {
					send(r, to, e.Message.Text, false)
				}
			}
		}
		switch {
		case r.Message == nil:
		case r.Kind == trace.Duplicate:
			send(r, *r.Message.To, r.Message.Text, true)
		case r.Kind == trace.Drop || r.Kind == "deliver":
			a := alike{r.Cause, *r.Message.To, r.Message.Text}
			w := way{to: c.Rank(a.to)}
			if len(flying[a]) > 0 && a.sender > 0 {
				w, flying[a] = flying[a][0], flying[a][1:]
			}
			w.end, w.lost = int(r.ID), r.Kind == trace.Drop
			ways[w]++
		}
	}
	for _, left := range flying {
		for _, w := range left {
			ways[w]++
		}
	}
	return ways
}

func receivers(e *trace.Effect, c *process.Config) []process.Label {
	var all []process.Label
	switch {
	case e.Cut:
		return e.Reached
	case e.Message.To != nil:
		return []process.Label{*e.Message.To}
	}
	for p := range process.ID(c.N) {
		if c.Label(p) != e.Message.From {
			all = append(all, c.Label(p))
		}
	}
	return all
}

// compare describes a journal at once, and then record by record from the end.
func compare(t *testing.T, kept *journal.Journal, full records) {
	t.Helper()
	if kept.Len() != len(full) {
		t.Fatalf("the journal has %d records, the trace %d", kept.Len(), len(full))
	}
	described := kept.Describe(1, len(full))
	for i := range full {
		if !reflect.DeepEqual(described[i], full[i]) {
			t.Fatalf("record %d is described as\n%v\nand was\n%v", i+1, &described[i], &full[i])
		}
	}
	for i := len(full); i >= 1; i -= 1 + len(full)/50 {
		if alone := kept.Describe(i, i)[0]; !reflect.DeepEqual(alone, full[i-1]) {
			t.Fatalf("record %d alone is described as\n%v\nand was\n%v", i, &alone, &full[i-1])
		}
	}
}

// The states from a journal equal those that result from the changes in the trace.
func TestJournalStates(t *testing.T) {
	for _, name := range []string{"mutex/maekawa.yaml", "super-peer-crash.yaml", "globalstate/crash.yaml", "mutex/dijkstra-corrupted.yaml"} {
		s, err := scenario.Load(folder + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		kept, full := &journal.Journal{}, records{}
		run, err := s.Begin(kept, &full)
		if err != nil {
			t.Fatal(err)
		}
		for run.Step() {
		}
		c := run.World.Config()
		for p := range process.ID(c.N) {
			if got, want := text(kept.State(p, kept.Len()).Fields), text(process.View(run.World.Machine(p), c)); got != want {
				t.Errorf("%s: at the end %d has\n%s\nand the journal says\n%s", name, p, want, got)
			}
		}
		followChanges(t, name, kept, full, c)
	}
}

// followChanges compares the states after each record with the changes that it tells of.
func followChanges(t *testing.T, name string, kept *journal.Journal, full records, c *process.Config) {
	t.Helper()
	for i := range full {
		p := c.Rank(full[i].Process)
		before, after := kept.State(p, i).Fields, kept.State(p, i+1).Fields
		var changes []trace.Change
		for _, change := range process.Diff(before, after) {
			changes = append(changes, trace.Change{
				Field: change.Name, Before: process.FieldView{Value: change.Before}.String(), After: process.FieldView{Value: change.After}.String(),
			})
		}
		if full[i].Kind != trace.Corrupt && full[i].Kind != process.Restart.String() && !reflect.DeepEqual(changes, full[i].Changes) {
			t.Errorf("%s: record %d changes %v, the states differ in %v", name, i+1, full[i].Changes, changes)
		}
	}
}

func text(fields []process.FieldView) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f.Name + "=" + f.String() + "\n")
	}
	return b.String()
}
