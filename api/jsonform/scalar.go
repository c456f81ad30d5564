package jsonform

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/conclave-io/conclave/api"
)

// SessionID is the public id of a session, as people see it.
type SessionID []byte

// MarshalText implements encoding.TextMarshaler.
func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// String returns the text of the id.
func (id SessionID) String() string { return api.PublicPrefix + hex.EncodeToString(id) }

// Uint64 is a number of 64 bits. It is written as a string, since many JSON readers have
// only 53 bits for a number, and read from a string or a number.
type Uint64 uint64

// MarshalText implements encoding.TextMarshaler.
func (n Uint64) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(n), 10), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (n *Uint64) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number from 0 up", text)
	}
	*n = Uint64(number)
	return nil
}

// Uint64sOf returns the form of numbers.
func Uint64sOf(numbers []uint64) []Uint64 {
	return each(numbers, func(n uint64) Uint64 { return Uint64(n) })
}

// Duration is a duration with its unit, such as "10s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It refuses negative durations.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf("%.40q: not a duration; write for example \"10s\" or \"500ms\"", text)
	}
	*d = Duration(parsed)
	return nil
}

// String returns the duration with its unit.
func (d Duration) String() string { return time.Duration(d).String() }

// TextOrBase64 is the value of a candidate: as text if it is UTF-8, otherwise in base64.
type TextOrBase64 struct {
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// TextOrBase64Of returns the form of a value.
func TextOrBase64Of(value []byte) TextOrBase64 {
	if len(value) == 0 {
		return TextOrBase64{}
	}
	if text := string(value); utf8.ValidString(text) {
		return TextOrBase64{Value: &text}
	}
	return TextOrBase64{ValueBase64: value}
}

// Bytes returns the value.
func (v TextOrBase64) Bytes() []byte {
	if v.Value != nil {
		return []byte(*v.Value)
	}
	return v.ValueBase64
}

// each translates the values of a list. Without any the result is an empty list in JSON, not null.
func each[A, B any](list []A, translate func(A) B) []B {
	all := make([]B, 0, len(list))
	for _, one := range list {
		all = append(all, translate(one))
	}
	return all
}

// texts copies a list of texts. Without any the result is an empty list in JSON, not null.
func texts(list []string) []string { return append([]string{}, list...) }

func wallClock(ns int64) time.Time { return time.Unix(0, ns).UTC() }
