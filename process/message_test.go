package process

import (
	"reflect"
	"testing"
)

// A copy has every field of a message, and shares no memory with it.
func TestCopyFrom(t *testing.T) {
	src := Message{
		Type: 1, Layer: 2, From: 3, To: 4, Subject: 5, Term: 6, Seq: 7, Clock: 8, Fence: 9, Value: 10,
		Vector: []uint64{11}, IDs: []ID{12}, Data: []byte{13},
	}
	for i, fields := 0, reflect.ValueOf(src); i < fields.NumField(); i++ {
		if fields.Field(i).IsZero() {
			t.Fatalf("the test sets no %s", fields.Type().Field(i).Name)
		}
	}
	for _, m := range []Message{{}, {Type: 21, Vector: []uint64{22, 23}, IDs: []ID{24, 25}, Data: []byte{26, 27}}} {
		m.CopyFrom(&src)
		if !m.Equal(&src) || !reflect.DeepEqual(m, src) {
			t.Errorf("the copy is %+v, not %+v", m, src)
		}
		m.Vector[0], m.IDs[0], m.Data[0] = 0, 0, 0
		if src.Vector[0]+uint64(src.IDs[0])+uint64(src.Data[0]) != 36 {
			t.Errorf("a change of the copy made the message %+v", src)
		}
		m.CopyFrom(&Message{To: 1})
		if !m.Equal(&Message{To: 1}) {
			t.Errorf("the copy of a message without slices is %+v", m)
		}
	}
}
