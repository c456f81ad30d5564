package process_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/process"
)

// everything is a Spec with a message that uses every field and one that uses none.
var everything = &process.Spec{
	Name: "everything",
	Messages: []process.MessageSpec{
		{Name: "ALL", Fields: []process.FieldUse{
			{Field: process.FieldSubject, Symbol: "p"}, {Field: process.FieldTerm, Symbol: "e"},
			{Field: process.FieldSeq, Symbol: "n"}, {Field: process.FieldClock, Symbol: "ts"},
			{Field: process.FieldFence, Symbol: "f"}, {Field: process.FieldValue, Symbol: "v", Names: []string{"no", "yes"}},
			{Field: process.FieldVector, Symbol: "LN"}, {Field: process.FieldIDs, Symbol: "Q"},
			{Field: process.FieldData, Symbol: "data"}}},
		{Name: "NONE"},
	},
	Timers: []string{"beat", "check"},
	Rules:  []process.RuleSpec{{Name: "R1", Text: "the only one"}},
}

func drawMessage(t *rapid.T, n int) process.Message {
	id := rapid.Custom(func(t *rapid.T) process.ID { return process.ID(rapid.IntRange(-1, n-1).Draw(t, "id")) })
	return process.Message{
		Type: 1, From: id.Draw(t, "from"), To: id.Draw(t, "to"), Subject: id.Draw(t, "subject"),
		Term:   process.Term(rapid.Uint64().Draw(t, "term")),
		Seq:    rapid.Uint64().Draw(t, "seq"),
		Clock:  rapid.Uint64().Draw(t, "clock"),
		Fence:  process.Fence(rapid.Uint64().Draw(t, "fence")),
		Value:  rapid.Int64().Draw(t, "value"),
		Vector: rapid.SliceOf(rapid.Uint64()).Draw(t, "vector"),
		IDs:    rapid.SliceOf(id).Draw(t, "ids"),
		Data:   rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
	}
}

func TestCodecKeepsMessages(t *testing.T) {
	codec := process.NewCodec(everything, 5)
	var decoded process.Message // reused, as a host does
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t, 5)
		wire := codec.Append(nil, &m)
		if err := codec.Decode(wire, &decoded); err != nil {
			t.Fatalf("decoding %+v: %v", m, err)
		}
		if !decoded.Equal(&m) {
			t.Fatalf("sent %+v, received %+v", m, decoded)
		}
		for end := range wire {
			if err := codec.Decode(wire[:end], &decoded); err == nil {
				t.Fatalf("the first %d of %d bytes were accepted", end, len(wire))
			}
		}
		var raw process.Message
		if err := raw.DecodeRaw(m.AppendRaw(nil), 5); err != nil || !raw.Equal(&m) {
			t.Fatalf("carried %+v, received %+v, error %v", m, raw, err)
		}
	})
}

func TestCodecCarriesOnlyDeclaredFields(t *testing.T) {
	codec := process.NewCodec(everything, 5)
	m := process.Message{Type: 2, From: 1, To: 2, Clock: 7, Vector: []uint64{1}}
	var decoded process.Message
	if err := codec.Decode(codec.Append(nil, &m), &decoded); err != nil {
		t.Fatal(err)
	}
	if set := decoded.FieldsSet(); set != 0 {
		t.Errorf("a message without declared fields arrived with %b", set)
	}
}

func TestCodecRefuses(t *testing.T) {
	codec := process.NewCodec(everything, 5)
	wide := process.NewCodec(everything, 100)
	cases := map[string]struct {
		src  []byte
		want string
	}{
		"nothing":            {nil, "ends too early"},
		"another version":    {[]byte{9, 2, 0, 1, 1, 0}, "version 9"},
		"an unknown type":    {[]byte{1, 3, 0, 1, 1, 0}, "no message of type 3"},
		"type 0":             {[]byte{1, 0, 0, 1, 1, 0}, "no message of type 0"},
		"an unknown layer":   {[]byte{1, 2, 1, 1, 1, 0}, "layer 1"},
		"an unknown field":   {[]byte{1, 1, 0, 1, 1, 0x80, 0x08}, "larger than 511"},
		"a field undeclared": {[]byte{1, 2, 0, 1, 1, 8, 7}, "does not declare field clock of NONE"},
		"a zero field":       {[]byte{1, 1, 0, 1, 1, 8, 0}, "present is zero"},
		"more bytes":         {[]byte{1, 2, 0, 1, 1, 0, 0}, "1 bytes too many"},
		"a process too high": {wide.Append(nil, &process.Message{Type: 2, From: 50}), "51 is larger than 5"},
		"a huge vector":      {[]byte{1, 1, 0, 1, 1, 0x40, 0xff, 0xff, 0xff, 0xff, 0x0f}, "ends too early"},
		"a huge message":     {make([]byte, process.MaxMessageSize+1), "larger than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var m process.Message
			if err := codec.Decode(c.src, &m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, it should say %q", err, c.want)
			}
		})
	}
}

func TestCodecDoesNotAllocate(t *testing.T) {
	codec := process.NewCodec(everything, 5)
	m := process.Message{Type: 1, From: 1, To: 2, Clock: 7, Vector: []uint64{1, 2, 3}, IDs: []process.ID{4}, Data: []byte("x")}
	var decoded process.Message
	var wire []byte
	allocs := testing.AllocsPerRun(100, func() {
		wire = codec.Append(wire[:0], &m)
		if err := codec.Decode(wire, &decoded); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("encoding and decoding allocates %v times", allocs)
	}
}

// FuzzCodec: for any input, Decode returns an error, or a message whose encoding decodes
// to the same message.
func FuzzCodec(f *testing.F) {
	codec := process.NewCodec(everything, 5)
	f.Add(codec.Append(nil, &process.Message{Type: 2}))
	f.Add(codec.Append(nil, &process.Message{
		Type: 1, From: 1, To: 4, Subject: process.None, Term: 1, Seq: 2, Clock: 300, Fence: 4, Value: -5,
		Vector: []uint64{1, 2}, IDs: []process.ID{0, 4}, Data: []byte("opaque")}))
	f.Fuzz(func(t *testing.T, src []byte) {
		var m, again process.Message
		if codec.Decode(src, &m) != nil {
			return
		}
		if err := codec.Decode(codec.Append(nil, &m), &again); err != nil || !again.Equal(&m) {
			t.Errorf("%+v became %+v, error %v", m, again, err)
		}
	})
}

func TestMessageText(t *testing.T) {
	c := &process.Config{N: 3, Labels: []process.Label{10, 20, 30}}
	m := process.Message{
		Type: 1, Subject: 2, Seq: 4, Clock: 3, Fence: process.MakeFence(2, 7), Value: 1,
		Vector: []uint64{0, 1}, IDs: []process.ID{1, process.None}, Data: []byte("x")}
	want := `ALL p=30 n=4 ts=3 f=2.7 v=yes LN=[0 1] Q=[20 -] data="x"`
	if got := everything.MessageText(&m, c); got != want {
		t.Errorf("text is\n%s, want\n%s", got, want)
	}
	if got := everything.TimerText(0, process.Timer(2).For(1), c); got != "check(20)" {
		t.Errorf("timer is %q, want check(20)", got)
	}
}
