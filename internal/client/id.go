package client

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// publicPrefix begins the text of every public id of a session.
const publicPrefix = "s-"

// PublicID returns the text of the public id of a session.
func PublicID(id []byte) string { return publicPrefix + hex.EncodeToString(id) }

// ParsePublicID reads what PublicID has written for an id of 16 bytes.
func ParsePublicID(text string) ([]byte, error) {
	digits, public := strings.CutPrefix(text, publicPrefix)
	id, err := hex.DecodeString(digits)
	if !public || err != nil || len(id) != 16 {
		return nil, fmt.Errorf("session: %.40q: expected a public id, %s and 32 hexadecimal digits", text, publicPrefix)
	}
	return id, nil
}
