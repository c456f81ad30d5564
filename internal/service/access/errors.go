package access

import (
	"fmt"
	"strconv"
	"strings"
)

// InvalidError says what is wrong with a change or a text, and what is expected.
type InvalidError struct {
	What, Value, Expected string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.What, quoted(e.Value), e.Expected)
}

func invalid(what, value, expected string) error {
	return &InvalidError{What: what, Value: value, Expected: expected}
}

// ConflictError means that a change was made for a revision that is not the present one.
type ConflictError struct {
	Expected, Revision uint64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("revision: %d: the rules are at revision %d; read them again", e.Expected, e.Revision)
}

// LimitError means that a change would make the state too large.
type LimitError struct {
	What       string
	Size, Most int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %d: must be at most %d", e.What, e.Size, e.Most)
}

// LockoutError means that after a change nobody would have the verb access, except callers
// through the socket of a server.
type LockoutError struct{}

func (*LockoutError) Error() string {
	return "nobody would be left who may change access, but through the socket of a server: bind somebody to the role admin, or force it"
}

// AnonymousError means that rules cannot be turned on while anonymous programs have sessions:
// they would keep what they hold, and could do nothing more.
type AnonymousError struct {
	Sessions int
	// Some are the first of these sessions, for people.
	Some []string
}

func (e *AnonymousError) Error() string {
	some := strings.Join(e.Some, "; ")
	if len(e.Some) < e.Sessions {
		some += "; ..."
	}
	return fmt.Sprintf("sessions of anonymous programs: %d (%s): set --end-sessions to end them", e.Sessions, some)
}

// maxQuoted is how many bytes of a value a message quotes.
const maxQuoted = 64

// quoted quotes the beginning of a text.
func quoted(text string) string {
	if cut := head(text); cut != text {
		return strconv.Quote(cut) + "..."
	}
	return strconv.Quote(text)
}

// head returns at most maxQuoted bytes of a text, without cutting a character.
func head(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	cut := 0
	for i := range text {
		if i > maxQuoted {
			break
		}
		cut = i
	}
	return text[:cut]
}
