package registry

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/internal/service/version"
)

// Two servers that apply the same log reach the same bytes and send the same answers,
// even if one of them was restored from a snapshot in between.
func TestSameLogSameState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.Custom(drawBatch), 1, 40).Draw(t, "log")
		one, other := atLevel(version.Max), atLevel(version.Max)
		var fxOne, fxOther Effects
		for i := range log {
			if rapid.Bool().Draw(t, "restart") {
				other = throughSnapshot(t, other)
			}
			one.Apply(uint64(i)/8, &log[i], &fxOne)
			decoded, err := DecodeBatch(log[i].Append(nil, version.Max))
			if err != nil {
				t.Fatal(err)
			}
			other.Apply(uint64(i)/8, &decoded, &fxOther)
		}
		if !bytes.Equal(one.Freeze().Encode(), other.Freeze().Encode()) {
			t.Fatal("the states differ")
		}
		if diff := cmp.Diff(fxOne, fxOther); diff != "" {
			t.Fatal(diff)
		}
	})
}

// How commands are spread over entries decides nothing.
func TestBatchingDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch := drawBatch(t)
		one, many := atLevel(version.Max), atLevel(version.Max)
		var fxOne, fxMany Effects
		one.Apply(3, &batch, &fxOne)
		many.Apply(3, &Batch{Time: batch.Time, Wall: batch.Wall}, &fxMany) // the clocks alone
		for _, c := range batch.Commands {
			many.Apply(3, &Batch{Time: batch.Time, Wall: batch.Wall, Commands: []Command{c}}, &fxMany)
		}
		if !bytes.Equal(one.Freeze().Encode(), many.Freeze().Encode()) {
			t.Fatal("the states differ")
		}
		if diff := cmp.Diff(fxOne, fxMany); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Nothing but what people read depends on the wall clock of an entry.
func TestWallClockDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.Custom(drawBatch), 1, 20).Draw(t, "log")
		one, other := New(), New()
		var fxOne, fxOther Effects
		for i := range log {
			one.Apply(3, &log[i], &fxOne)
			other.Apply(3, &Batch{Time: log[i].Time, Wall: rapid.Int64().Draw(t, "clock"), Commands: log[i].Commands}, &fxOther)
		}
		if diff := cmp.Diff(fxOne, fxOther, cmpopts.IgnoreFields(Holder{}, "Since")); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Effects that are reset and used again hold nothing of their past.
func TestReset(t *testing.T) {
	r := New()
	fx := applyAll(r, open("a"), acquire("a", 1, "n"), Command{Op: OpAcquire, Session: sessionNamed("a"), Sequence: 2, Class: Election, Name: "e"},
		Command{Op: OpClose, Session: sessionNamed("a"), Sequence: 3})
	if len(fx.Outcomes) != 4 || len(fx.Renewed) != 1 || len(fx.Ended) != 1 || len(fx.Elections) != 2 {
		t.Fatalf("effects %+v", fx)
	}
	fx.Reset()
	if diff := cmp.Diff(Effects{}, fx, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// drawBatch draws an entry of commands that interact: few sessions, few names, low
// numbers.
func drawBatch(t *rapid.T) Batch {
	return Batch{
		Time:     rapid.Int64Range(0, 1e12).Draw(t, "time"),
		Wall:     rapid.Int64Range(0, 1e12).Draw(t, "wall"),
		Commands: rapid.SliceOfN(rapid.Custom(drawCommand), 0, 60).Draw(t, "commands"),
	}
}

func drawCommand(t *rapid.T) Command {
	op := rapid.SampledFrom([]Op{
		OpOpen, OpOpen, OpRenew, OpClose, OpAcquire, OpAcquire, OpAcquire, OpAcquire, OpRelease, OpRelease,
		OpCancel, OpUpdate, OpExpire, OpSilence, OpMember, OpOvertake, OpEnd,
	}).Draw(t, "op")
	number := rapid.Uint64Range(0, 12)
	c := Command{Op: op}
	switch op {
	case OpExpire, OpSilence:
		c.Term = rapid.Uint64Range(0, 5).Draw(t, "term")
		c.Verdicts = rapid.SliceOfN(rapid.Custom(drawVerdict), 1, 3).Draw(t, "verdicts")
		return c
	case OpMember:
		c.Member = &Member{
			ID: number.Draw(t, "id"), UID: rapid.Uint64().Draw(t, "uid"), PeerAddress: rapid.String().Draw(t, "peer address"),
			ClientAddress: rapid.String().Draw(t, "client address"), Standing: Standing(rapid.IntRange(0, 2).Draw(t, "standing")),
		}
		return c
	case OpEnd:
		c.Session, c.By = drawSession(t), &Origin{Request: [16]byte{1}}
		return c
	case OpOvertake:
		c.Class, c.Name = Election, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
		return c
	}
	c.Session, c.Sequence, c.Low = drawSession(t), number.Draw(t, "sequence"), rapid.SampledFrom([]uint64{0, 0, 0, 3, 9}).Draw(t, "low")
	value := rapid.SampledFrom([]string{"", "v"})
	switch op {
	case OpOpen:
		c.TTL, c.Host, c.PID, c.Program = rapid.Int64Range(0, 1e10).Draw(t, "ttl"), value.Draw(t, "host"), rapid.Int64().Draw(t, "pid"), value.Draw(t, "program")
	case OpAcquire:
		c.Class, c.Name, c.Try = Class(rapid.IntRange(0, 2).Draw(t, "class")), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"), rapid.Bool().Draw(t, "try")
		c.Limit, c.Value = rapid.SampledFrom([]uint32{0, 1, 1, 2}).Draw(t, "limit"), value.Draw(t, "value")
		for range rapid.IntRange(0, 2).Draw(t, "keeps") {
			c.Keeps = append(c.Keeps, Kept{Class(rapid.IntRange(0, 1).Draw(t, "of")), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "kept"), 1<<40 + rapid.Uint64Range(0, 20).Draw(t, "fence")})
		}
		if c.Class == Election {
			c.Priority, c.Patience = rapid.Int64Range(0, 2).Draw(t, "priority"), rapid.SampledFrom([]int64{0, 1, 1e11}).Draw(t, "patience")
		}
	case OpRelease, OpCancel:
		c.Hold = number.Draw(t, "hold")
	case OpUpdate:
		c.Hold, c.Value = number.Draw(t, "hold"), value.Draw(t, "value")
	}
	return c
}

func drawVerdict(t *rapid.T) Verdict {
	return Verdict{drawSession(t), rapid.Uint64Range(1, 8).Draw(t, "renewals"), rapid.Int64().Draw(t, "remaining")}
}

func drawSession(t *rapid.T) SessionID {
	return sessionNamed(rapid.SampledFrom([]string{"a", "b", "c", "-"}).Draw(t, "session"))
}
