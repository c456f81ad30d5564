package registry

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry/expect"
	"github.com/conclave-io/conclave/internal/service/settings"
)

// Bounds of the fields of a request.
const (
	MaxName  = 512       // bytes
	MaxValue = 64 << 10  // bytes
	MaxText  = 256       // bytes of a host, program, principal, address or reason
	MaxLimit = 1 << 20   // holders of one resource
	MinTTL   = 100 * 1e6 // ns
	MaxTTL   = 3600 * 1e9

	// MaxMessage bounds the message of an answer, in bytes, and maxQuoted how much of a name
	// or value it quotes.
	MaxMessage = 512
	maxQuoted  = 64

	// MaxAnswers bounds the answers stored for one session, and so the requests that a client
	// may have unanswered at a time.
	MaxAnswers = 1024
	// MaxQueue bounds the waiters of one resource.
	MaxQueue = 1 << 20
)

// Validate returns what is wrong with a client's command, or "". Apply relies on it and does
// not check again.
func (c *Command) Validate() string {
	switch {
	case c.Op.ForGuards() && c.Guarding == nil:
		return fmt.Sprintf("operation %d has no operands", c.Op)
	case c.Op.Unbound():
		return c.validateAct()
	case !c.Op.client():
		return fmt.Sprintf("operation %d is not a client's", c.Op)
	}
	switch {
	case c.Session == (SessionID{}):
		return "the session id is all zeros: draw 16 random bytes"
	case c.Sequence == 0:
		return "the sequence number is 0: requests are numbered from 1 up"
	}
	switch c.Op {
	case OpOpen:
		return c.validateOpen()
	case OpAcquire:
		return c.validateAcquire()
	case OpUpdate, OpTransfer:
		return validateValue(c.Value)
	case OpRevoke:
		return c.validateRevoke()
	case OpEnter:
		return c.validateEnter()
	case OpTurn:
		return c.validateReason()
	}
	return ""
}

// validateAct is Validate for an operator's command that belongs to no session.
func (c *Command) validateAct() string {
	switch c.Op {
	case OpGuard:
		return c.validateGuard()
	case OpExpect:
		return c.validateExpect()
	case OpAccess:
		return c.validateChange()
	case OpNote:
		return c.validateNote()
	case OpSet:
		return firstProblem(settings.Check(c.Name, c.Value), c.Origin().validate())
	}
	return firstProblem(c.validateReason(), c.Origin().validate())
}

func (c *Command) validateEnter() string {
	if c.guarding().Server == 0 {
		return "server: 0: must be the id of a server, from 1 up"
	}
	return c.validateOpen()
}

func (c *Command) validateGuard() string {
	if c.Class != Lock {
		return c.validateWatch()
	}
	switch use := c.guarding().Use; {
	case c.guarding().Wait < 0:
		return fmt.Sprintf("wait: %d ns: must not be negative", c.guarding().Wait)
	case c.guarding().Remove && use != view.Use{}:
		return "guard: names an algorithm and is to be removed: name one or remove it"
	case !use.Guarded() && use.Options != "":
		return fmt.Sprintf("options: %s: agreement has none", quoted(use.Options))
	}
	return firstProblem(ValidateName(c.Name), validateText("options", c.guarding().Use.Options), c.validateReason(), c.Origin().validate())
}

func (c *Command) validateWatch() string {
	switch use := c.guarding().Use; {
	case c.Class != View:
		return fmt.Sprintf("guard: class %d has none: 0 is a lock, %d the view", c.Class, View)
	case c.Name != "":
		return fmt.Sprintf("watch: prefix %s: must be empty, the stack is that of all members", quoted(c.Name))
	case *c.guarding() != Guarding{Use: use}:
		return "watch: a stack changes at once: neither remove, wait, force nor cancel it"
	case use.Algorithm == "" && use.Options != "":
		return fmt.Sprintf("options: %s: no stack has none", quoted(use.Options))
	}
	return firstProblem(validateText("options", c.guarding().Use.Options), c.validateReason(), c.Origin().validate())
}

func (c *Command) validateOpen() string {
	if c.TTL < MinTTL || c.TTL > MaxTTL {
		return fmt.Sprintf("the TTL of a session is %d ms: it must be 100 ms to 1 h", c.TTL/1e6)
	}
	return firstProblem(validateText("host", c.Host), validateText("program", c.Program), validateText("owner", c.Owner))
}

func (c *Command) validateAcquire() string {
	if problem := c.validateResource(); problem != "" {
		return problem
	}
	switch {
	case c.Limit > MaxLimit:
		return fmt.Sprintf("limit %d is over %d", c.Limit, MaxLimit)
	case c.Class == Election && c.Limit > 1:
		return fmt.Sprintf("limit %d: an election has one leader", c.Limit)
	case c.Class == Election && c.Shared:
		return "an election has one leader: it cannot be shared"
	case c.Shared && c.Limit > 1:
		return fmt.Sprintf("limit %d: a shared hold has no limit", c.Limit)
	case c.Class == Lock && (c.Priority != 0 || c.Patience != 0):
		return "a lock has no priorities: it is granted in the order of arrival"
	case c.Patience < 0 || c.Patience > MaxTTL:
		return fmt.Sprintf("the patience of a candidate is %d ms: it must be 0 to 1 h", c.Patience/1e6)
	}
	if problem := firstProblem(c.validateLinger(), validateValue(c.Value)); problem != "" {
		return problem
	}
	return validateKeeps(c.Keeps)
}

// validateResource checks the class and the name.
func (c *Command) validateResource() string {
	if c.Class >= classes {
		return fmt.Sprintf("class %d is unknown: 0 is a lock, 1 an election", c.Class)
	}
	return ValidateName(c.Name)
}

func (c *Command) validateExpect() string {
	if problem := firstProblem(c.validateResource(), c.Origin().validate()); problem != "" || c.Every == 0 {
		return problem
	}
	return expect.Validate(c.Every)
}

func (c *Command) validateRevoke() string {
	return firstProblem(c.validateResource(), c.validateReason(), c.Origin().validate())
}

func (c *Command) validateReason() string { return validateText("reason", c.Value) }

func (o Origin) validate() string {
	return firstProblem(validateText("actor", o.Actor), validateText("via", o.Via), validateText("remote", o.Remote))
}

func firstProblem(problems ...string) string {
	for _, problem := range problems {
		if problem != "" {
			return problem
		}
	}
	return ""
}

// validateText checks a text that people will read in lists, on terminals and in
// logs.
func validateText(what, text string) string {
	switch {
	case len(text) > MaxText:
		return fmt.Sprintf("%s: %d bytes: must have at most %d", what, len(text), MaxText)
	case printable(text):
		return ""
	case !utf8.ValidString(text):
		return fmt.Sprintf("%s: %s: must be valid UTF-8", what, quoted(text))
	}
	if char := controlIn(text); char != "" {
		return fmt.Sprintf("%s: %s: has %s; remove it", what, quoted(text), char)
	}
	return ""
}

// printable reports whether a text has only printable ASCII characters. Most texts do, and need no
// further checks.
func printable(text string) bool {
	for at := range len(text) {
		if text[at] < ' ' || text[at] > '~' {
			return false
		}
	}
	return true
}

// controlIn says which control character a text has first, or returns "".
func controlIn(text string) string {
	for at, char := range text {
		if unicode.IsControl(char) {
			return fmt.Sprintf("the control character %U at byte %d", char, at)
		}
	}
	return ""
}

// ValidateName returns what is wrong with the name of a resource, or "".
func ValidateName(name string) string {
	switch {
	case name == "":
		return "the name is empty: it must have 1 to 512 bytes"
	case len(name) > MaxName:
		return fmt.Sprintf("the name has %d bytes: it may have 512", len(name))
	case printable(name):
		return ""
	case !utf8.ValidString(name):
		return fmt.Sprintf("the name %s is not valid UTF-8", quoted(name))
	}
	if char := controlIn(name); char != "" {
		return fmt.Sprintf("the name %s has %s", quoted(name), char)
	}
	return ""
}

func validateValue(value string) string {
	if len(value) > MaxValue {
		return fmt.Sprintf("the value has %d bytes: it may have %d", len(value), MaxValue)
	}
	return ""
}

// quoted quotes the beginning of a name or value, for a message.
func quoted(text string) string {
	if len(text) <= maxQuoted {
		return strconv.Quote(text)
	}
	cut := maxQuoted
	for i := range text {
		if i > maxQuoted {
			break
		}
		cut = i // the start of a character
	}
	return strconv.Quote(text[:cut]) + "..."
}

// ClipText cuts a text to at most MaxText bytes of UTF-8.
func ClipText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), MaxText)], "")
}
