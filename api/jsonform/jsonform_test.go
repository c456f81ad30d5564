package jsonform_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/api/jsonform"
)

// filler sets every field of a message to a value of its own.
type filler struct {
	next uint64
	text bool // bytes are text
}

func (f *filler) fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if one := field.ContainingOneof(); one != nil && m.WhichOneof(one) != nil {
			continue
		}
		if field.IsList() {
			list := m.Mutable(field).List()
			for range 2 {
				list.Append(f.value(field, list.NewElement))
			}
			continue
		}
		m.Set(field, f.value(field, func() protoreflect.Value { return m.NewField(field) }))
	}
}

func (f *filler) value(field protoreflect.FieldDescriptor, made func() protoreflect.Value) protoreflect.Value {
	f.next++
	switch field.Kind() {
	case protoreflect.MessageKind:
		v := made()
		f.fill(v.Message())
		return v
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(field.Name()) + " <&>ü")
	case protoreflect.BytesKind:
		if f.text {
			return protoreflect.ValueOfBytes([]byte("text of " + field.Name()))
		}
		return protoreflect.ValueOfBytes(bytes.Repeat([]byte{0x80 + byte(f.next)}, 16))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(int(f.next) % values.Len()).Number())
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1<<60 + f.next)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1_700_000_000_123_456_789 + int64(f.next))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(f.next))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(f.next) / 1000)
	}
	panic(field.Kind())
}

// form returns a function that makes the form of a filled message.
func form[M proto.Message, B any](convert func(M) B) func(fill func(protoreflect.Message)) any {
	return func(fill func(protoreflect.Message)) any {
		var m M
		m = m.ProtoReflect().New().Interface().(M)
		fill(m.ProtoReflect())
		return convert(m)
	}
}

// forms has the functions that make forms which are not parts of another.
var forms = map[string]func(fill func(protoreflect.Message)) any{
	"holder":      form(jsonform.HolderOf),
	"resource":    form(jsonform.ResourceOf),
	"explanation": form(jsonform.ExplanationOf),
	"session":     form(jsonform.SessionOf),
	"status":      form(jsonform.StatusOf),
	"election":    form(jsonform.ElectionOf),
	"dependency":  form(jsonform.DependencyOf),
	"waiting":     form(jsonform.WaitingOf),
	"seat":        form(jsonform.SeatOf),
	"guard":       form(jsonform.GuardOf),
	"cut":         form(jsonform.CutOf),
	"expectation": form(jsonform.ExpectationOf),
	"rules":       form(jsonform.RulesOf),
}

// TestForms compares the forms of a message without fields, of one with all fields, and of one whose
// bytes are text with those of earlier releases.
func TestForms(t *testing.T) {
	for name, made := range forms {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		for _, fill := range []func(protoreflect.Message){
			func(protoreflect.Message) {}, (&filler{}).fill, (&filler{text: true}).fill,
		} {
			if err := enc.Encode(made(fill)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
