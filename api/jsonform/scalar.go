package jsonform

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
)

// sessionIDSize is the size of the id of a session, in bytes.
const sessionIDSize = 16

// SessionID is the public id of a session, as people see it.
type SessionID []byte

// MarshalText implements encoding.TextMarshaler.
func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *SessionID) UnmarshalText(text []byte) error {
	digits, public := strings.CutPrefix(string(text), api.PublicPrefix)
	raw, err := hex.DecodeString(digits)
	if !public || err != nil || len(raw) != sessionIDSize {
		return fmt.Errorf(`%.40q: not the public id of a session; must be %q and 32 hexadecimal digits`, text, api.PublicPrefix)
	}
	*id = raw
	return nil
}

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
		return fmt.Errorf("%.40q: must be an integer of at least 0", text)
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

// LatencyCount is an upper bound of a latency in us, and the number of requests.
type LatencyCount [2]uint64

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
