package pool

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// An invalid token is not sent, and the caller gets an error at once.
func TestTokensThatAreNone(t *testing.T) {
	for _, c := range []struct {
		token, want string
		err         error
	}{
		{"", "token: empty", nil},
		{"a\nb", "a character that tokens do not have", nil},
		{"", "no such file", errors.New("no such file")},
	} {
		_, err := bearer(func(context.Context) (string, error) { return c.token, c.err }).GetRequestMetadata(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.token, err, c.want)
		}
	}
}
