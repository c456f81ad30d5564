package settings

import (
	"bytes"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

func TestCheck(t *testing.T) {
	for given, want := range map[[2]string]string{
		{"names", "nfc"}: "", {"names", "any"}: "",
		{"name", "nfc"}:                    `setting: "name": unknown name; did you mean "names"?`,
		{"", ""}:                           `setting: "": unknown name; expected names`,
		{"names", ""}:                      `names: "": unknown value; expected any or nfc`,
		{"names", "NFC"}:                   `names: "NFC": unknown value; did you mean "nfc"?`,
		{"names", "nfkc"}:                  `names: "nfkc": unknown value; did you mean "nfc"?`,
		{"names", strings.Repeat("x", 65)}: `names: "` + strings.Repeat("x", 40) + `": unknown value; expected any or nfc`,
	} {
		if got := Check(given[0], given[1]); got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
}

// A state never changes, a change has a larger revision, and a change to the same value is none.
func TestWith(t *testing.T) {
	var none *State
	first := none.With(Names, NFC, 700)
	second := first.With(Names, Any, 700)
	if none.NFC() || none.Changed() || none.Revision() != 0 || none.With(Names, Any, 1) != nil {
		t.Errorf("the defaults are %v at revision %d", none.List(), none.Revision())
	}
	if !first.NFC() || !first.Changed() || first.Revision() != 700 || first.With(Names, NFC, 900) != first {
		t.Errorf("after a change they are %v at revision %d", first.List(), first.Revision())
	}
	if second.NFC() || second.Changed() || second.Revision() != 701 {
		t.Errorf("after two changes they are %v at revision %d", second.List(), second.Revision())
	}
}

func FuzzRead(f *testing.F) {
	var none *State
	f.Add(none.Append(nil))
	f.Add(none.With(Names, NFC, 7).Append(nil))
	f.Add(none.With(Names, NFC, 7).With(Names, Any, 8).Append(nil))
	f.Add([]byte("\x00\x01\x05names\x03nfc"))                 // at revision 0
	f.Add([]byte("\x07\x01\x05names\x03any"))                 // the default
	f.Add([]byte("\x07\x01\x05names\x03nfd"))                 // unknown
	f.Add([]byte("\x07\x02\x05names\x03nfc\x05names\x03nfc")) // twice
	f.Fuzz(func(t *testing.T, data []byte) {
		rd := wire.NewReader(data)
		s := Read(rd)
		if rd.Close() != nil {
			return
		}
		if again := s.Append(nil); !bytes.Equal(again, read(t, again).Append(nil)) {
			t.Errorf("%x is read as %v at revision %d, and written as %x", data, s.List(), s.Revision(), again)
		}
	})
}

// read reads what must be valid.
func read(t *testing.T, data []byte) *State {
	rd := wire.NewReader(data)
	s := Read(rd)
	if err := rd.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadRefuses(t *testing.T) {
	for data, want := range map[string]string{
		"\x00\x01\x05names\x03nfc":                 "settings: 1 are changed at revision 0",
		"\x07\x01\x05names\x03any":                 `settings: names: "any": is the default, which is not stored`,
		"\x07\x01\x05names\x03nfd":                 `settings: names: "nfd": unknown value; did you mean "nfc"?`,
		"\x07\x02\x05names\x03nfc\x05names\x03nfc": `settings: names: comes after "names"`,
	} {
		rd := wire.NewReader([]byte(data))
		if Read(rd); rd.Err() == nil || rd.Err().Error() != want {
			t.Errorf("%q: %v, want %s", data, rd.Err(), want)
		}
	}
}
