package access_test

import (
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/clitest"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// TestTokensAreNotRepeated: who gives a token where something else belongs does not find it in a message,
// in the rules, or in the audit log.
func TestTokensAreNotRepeated(t *testing.T) {
	token, _, _ := admin.NewToken("red", time.Time{}, "")
	for _, args := range [][]string{
		{"access", "whoami", "--token-file", token},
		{"access", "token", "revoke", token},
		{"access", "grant", "token:" + token, "red"},
		{"access", "grant", token, "red"},
	} {
		status, printed, said := clitest.Run(append(args, "--servers", "127.0.0.1:1", "--timeout", "100ms")...)
		if status != ui.StatusError || strings.Contains(printed+said, token) || !strings.Contains(said, "token") || strings.Contains(said, "did not answer") {
			t.Errorf("%s: status %d, %s%s", strings.ReplaceAll(strings.Join(args, " "), token, "TOKEN"), status, printed, said)
		}
	}
}
