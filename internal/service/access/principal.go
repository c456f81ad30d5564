package access

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPrincipal is the maximum size of a principal in bytes.
const MaxPrincipal = 256

// Local is the source of principals that came through the socket of a server, or run in its
// process. They have the role admin, whatever the bindings say.
const Local = "local"

// Everyone, in a binding or a quota, matches all principals that have proven who they are.
const Everyone = "everyone"

// Source returns the part of a principal before the first colon: what proved it. It is empty
// for the anonymous principal, which is empty.
func Source(principal string) string {
	source, _, _ := strings.Cut(principal, ":")
	return source
}

// ValidatePrincipal returns an error if a text is not a principal: SOURCE:NAME, in 1 to 256
// bytes of UTF-8 without control characters and without '*'.
func ValidatePrincipal(principal string) error {
	if i := strings.IndexByte(principal, '*'); i >= 0 {
		return invalid("principal", principal, "must not contain *")
	}
	return validateWho("principal", principal)
}

// validatePattern checks the pattern of a binding or a quota: a principal, one with a
// trailing '*', or everyone.
func validatePattern(who string) error {
	if who == Everyone {
		return nil
	}
	switch Source(who) {
	case Local:
		return invalid("principal", who, "the source local has the role admin and no quota; remove it")
	case Joining:
		return invalid("principal", who, "the source join has no roles and no quota; remove it")
	}
	stem, _ := strings.CutSuffix(who, "*")
	if strings.Contains(stem, "*") {
		return invalid("principal", who, "must have at most one *, at its end")
	}
	if stem == who {
		return ValidatePrincipal(who)
	}
	if err := validateText("principal", stem, MaxPrincipal); err != nil {
		return err
	}
	if source, _, found := strings.Cut(stem, ":"); !found || source == "" {
		return invalid("principal", who, "must begin with a source and a colon, as in cert:*; everyone is written "+Everyone)
	}
	return nil
}

func validateWho(what, principal string) error {
	if err := validateText(what, principal, MaxPrincipal); err != nil {
		return err
	}
	if source, name, _ := strings.Cut(principal, ":"); source == "" || name == "" {
		return invalid(what, principal, "must be written SOURCE:NAME, as in cert:alice")
	}
	return nil
}

// validateText checks a text of 1 to most bytes that people will read.
func validateText(what, text string, most int) error {
	switch {
	case text == "":
		return invalid(what, text, "must not be empty")
	case len(text) > most:
		return invalid(what, text, "must have at most "+strconv.Itoa(most)+" bytes")
	case !utf8.ValidString(text):
		return invalid(what, text, "must be valid UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return invalid(what, text, "must have no control characters")
	}
	return nil
}
