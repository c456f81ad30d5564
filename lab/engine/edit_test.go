package engine_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/lab/engine"
)

// An edit at a random record changes nothing before that record and takes effect at the announced
// time. The engine sends the edited run from the first difference on. The result is equal to a new
// run.
func TestEdits(t *testing.T) {
	p := newPage(t)
	random := rand.New(rand.NewPCG(1, 2))
	edits, lost := 0, 0
	for _, id := range []string{"mutex/ricart-agrawala", "mutex/maekawa", "raymond-crash", "mutex/lamport", "bully", "super-peer-loss", "multicast/total-sequencer"} {
		text := p.scenario(id)
		var base columns
		run, _ := p.open(engine.Request{Text: text, Name: id}, &base)
		n := len(run.Header.Labels)
		for range 12 {
			at := random.IntN(len(base.records) + 1)
			rank := random.IntN(n)
			edit := []engine.Edit{
				{Do: "crash", Rank: rank}, {Do: "crash", Rank: rank, For: "3"}, {Do: "pause", Rank: rank, For: "2"},
				{Do: "partition", Ranks: []int{rank}, For: "4"}, {Do: "partition", Ranks: []int{rank}, OneWay: true},
				{Do: "lose", Flight: random.IntN(len(base.flights))}, {Do: "repeat", Flight: random.IntN(len(base.flights))},
				{Do: "delay", Flight: random.IntN(len(base.flights)), By: int64(random.IntN(9_000_000)) - 2_000_000},
				{Do: "leave", Rank: rank}, {Do: "suspect", Rank: rank, To: (rank + 1) % n},
			}[random.IntN(10)]
			message := edit.Do == "lose" || edit.Do == "repeat" || edit.Do == "delay"
			if f := base.flights[edit.Flight]; message && (f.sender == 0 || f.fate&0x82 != 0) {
				got := p.problem(engine.Request{Call: engine.CallEdit, Run: run.Run, At: at, Text: text, Edit: &edit})
				if got.Code != engine.CodeRequest {
					t.Errorf("%s: %+v of a message that cannot be: %+v", id, edit, got)
				}
				continue
			}
			edits++
			done := result[engine.Edited](p, engine.Request{Call: engine.CallEdit, Run: run.Run, At: at, Text: text, Edit: &edit})
			if !strings.Contains(strings.Split(done.Text, "\n")[done.Line-1], done.Item) {
				t.Errorf("%s: line %d does not have %s", id, done.Line, done.Item)
			}
			like := columns{append([][]byte{}, base.records...), append([]flight{}, base.flights...)}
			fresh := columns{records: [][]byte{}, flights: []flight{}}
			p.open(engine.Request{Text: done.Text, Like: run.Run}, &like)
			chunk := decode[engine.Chunk](t, p.answers(p.last)[1])
			p.open(engine.Request{Text: done.Text}, &fresh)
			if !reflect.DeepEqual(like, fresh) {
				t.Errorf("%s: %s: what was sent from the first difference is not the fresh run", id, done.Item)
			}
			if !message {
				if chunk.Same < at {
					t.Errorf("%s: %s after record %d: only %d records are the same", id, done.Item, at, chunk.Same)
				}
				continue
			}
			lost++
			f := fresh.flights[edit.Flight]
			if chunk.Same < int(f.sender) || f.sender != base.flights[edit.Flight].sender {
				t.Errorf("%s: %s: only %d records are the same", id, done.Item, chunk.Same)
			}
			if edit.Do == "lose" && f.fate != 2 || edit.Do == "repeat" && fresh.copies(f) <= base.copies(f) {
				t.Errorf("%s: %s: flight %d is %+v", id, done.Item, edit.Flight, f)
			}
		}
	}
	if edits < 50 || lost < 10 {
		t.Errorf("only %d edits were tried, %d of messages", edits, lost)
	}
}

// copies returns how many times the network duplicated a flight.
func (c *columns) copies(of flight) int {
	n := 0
	for _, f := range c.flights {
		if f.fate&0x80 != 0 && f.sender == of.sender && f.to == of.to && f.typ == of.typ {
			n++
		}
	}
	return n
}

func TestBadEdits(t *testing.T) {
	p := newPage(t)
	const text = "algorithm: lamport\nn: 3\nworkload: {commands: [{at: 0, acquire: 1}]}\n"
	run, end := p.open(engine.Request{Text: text}, &columns{})
	for _, c := range []struct {
		at         int
		edit       *engine.Edit
		text       string
		code, want string
	}{
		{0, nil, text, engine.CodeRequest, "missing"},
		{end.Records + 1, &engine.Edit{Do: "crash"}, text, engine.CodeRequest, "at: "},
		{1, &engine.Edit{Do: "dance"}, text, engine.CodeRequest, "dance"},
		{1, &engine.Edit{Do: "crash", Rank: 3}, text, engine.CodeRequest, "rank 3"},
		{1, &engine.Edit{Do: "crash", For: "3}, {at: 1"}, text, engine.CodeRequest, "for: "},
		{1, &engine.Edit{Do: "lose", Flight: 1000}, text, engine.CodeRequest, "flight: 1000"},
		{1, &engine.Edit{Do: "delay"}, text, engine.CodeRequest, "by: 0"},
		{1, &engine.Edit{Do: "crash", For: "soon"}, text, engine.CodeScenario, "soon"},
		{1, &engine.Edit{Do: "partition"}, text, engine.CodeScenario, "empty"},
		{1, &engine.Edit{Do: "crash"}, "n: 3\n", engine.CodeScenario, "algorithm"},
	} {
		got := p.problem(engine.Request{Call: engine.CallEdit, Run: run.Run, At: c.at, Text: c.text, Edit: c.edit})
		if got.Code != c.code || !strings.Contains(got.Message, c.want) {
			t.Errorf("%+v fails with %+v, it must be %s with %q", c.edit, got, c.code, c.want)
		}
	}
}

// In a scenario with a random delay and no d, a fault that is added at the cursor happens there: its
// time is written in the unit in which the scenario is read.
func TestEditWithoutD(t *testing.T) {
	p := newPage(t)
	for _, id := range []string{"clock/cristian-drifting", "clock/berkeley-drifting", "clock/ntp-drifting"} {
		text, at := p.scenario(id), 20
		var whole columns
		run, _ := p.open(engine.Request{Text: text, Name: id}, &whole)
		edit := engine.Edit{Do: "crash", Rank: 1}
		done := result[engine.Edited](p, engine.Request{Call: engine.CallEdit, Run: run.Run, At: at, Text: text, Edit: &edit})
		edited, _ := p.open(engine.Request{Text: done.Text, Name: id, Like: run.Run}, &whole)
		same := decode[engine.Chunk](t, p.answers(p.last)[1]).Same
		turns := result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: edited.Run, At: same + 1})
		if after := turns.Time - done.Time; after < 0 || after > 1_000_000 { // the choices begin within a D
			t.Errorf("%s: %s: the first difference is at %d, announced for %d", id, done.Item, turns.Time, done.Time)
		}
	}
}
