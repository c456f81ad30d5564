package authn

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/conclave-io/conclave/internal/service/access"
)

const (
	// tokenPrefix starts every token, so that secret scanners recognise them.
	tokenPrefix = "cvt1_"
	// tokenSecretSize is the size of a token's secret, in bytes.
	tokenSecretSize = 32
)

// ErrUnknownToken says that no record proves a token.
var ErrUnknownToken = errors.New("is unknown or revoked")

// errExpiredToken means that a token has expired.
var errExpiredToken = errors.New("expired")

// Bearer returns the principal that a bearer token proves by the rules of access, if one is given.
func Bearer(rules *access.State, authorization []string) (principal string, given bool, err error) {
	for _, value := range authorization {
		scheme, proof, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "bearer") {
			continue // credentials for a proxy, which has dealt with them
		}
		if given {
			return "", true, errors.New("authorization: more than one bearer token: send one")
		}
		given = true
		if principal, err = provenBy(rules, strings.TrimSpace(proof)); err != nil {
			return "", true, err
		}
	}
	return principal, given, nil
}

// provenBy returns the principal that a token proves.
func provenBy(rules *access.State, token string) (string, error) {
	if rules == nil {
		return "", errors.New("authorization: this cluster has no tokens: send no bearer token")
	}
	rest, is := strings.CutPrefix(token, tokenPrefix)
	id, encoded, _ := strings.Cut(rest, "_")
	secret, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if !is || err != nil || len(secret) != tokenSecretSize {
		return "", errors.New("authorization: not a token: expected " + tokenPrefix + "ID_SECRET")
	}
	record, found := rules.Token(id)
	switch {
	case !found || !record.Proves(secret): // one answer for both, because ids are not secret, but whether they exist is
		return "", fmt.Errorf("the token %s%.4s... %w", tokenPrefix, id, ErrUnknownToken)
	case record.Expired(time.Now().UnixNano()):
		return "", fmt.Errorf("the token %s%.4s... %w on %s", tokenPrefix, id, errExpiredToken, time.Unix(0, record.Expires).UTC().Format(time.DateOnly))
	}
	return record.Principal(), nil
}

// WhyInvalid says in a word, for figures, why a bearer token proves nobody.
func WhyInvalid(err error) string {
	switch {
	case errors.Is(err, ErrUnknownToken):
		return "unknown"
	case errors.Is(err, errExpiredToken):
		return "expired"
	}
	return "malformed"
}
