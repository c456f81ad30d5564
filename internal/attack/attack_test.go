// Package attack has the attacks that a cluster withstands, each one function that runs
// against real servers over gRPC, HTTP and raw sockets.
package attack

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// attack is one attack and what it must come to. "Same" means that the victim's hold,
// fence and context are as before.
type attack struct {
	number   int
	what     string
	expected string
	// secure asks for a cluster whose clients prove themselves by certificates.
	secure bool
	run    func(*world)
}

var attacks = []attack{
	{1, "release with the session_id of a list, with and without s-, as bytes", "INVALID or SESSION_GONE; same", false, releaseByID},
	{2, "renew with the session_id of a list, with and without s-, as bytes", "INVALID or SESSION_GONE; same", false, renewByID},
	{3, "acquire with the session_id of a list, with and without s-, as bytes", "INVALID or SESSION_GONE; same", false, acquireByID},
	{4, "close with the session_id of a list, with and without s-, as bytes", "INVALID or SESSION_GONE; same", false, closeByID},
	{5, "a stolen secret with another certificate", "SESSION_GONE; same", true, stolenSecret},
	{6, "a stolen secret with another certificate, Open and Acquire in one frame before those of the owner", "a session of its own; same", true, stolenBeforehand},
	{7, "search log, snapshots, backup, lists, metrics and debug log for the secrets of all sessions", "not found", false, searchForSecrets},
	{8, "end a session that holds and renews", "told by one message; the next grant only after its release", false, endSession},
	{9, "ignore the end of one's session: go on renewing and acquiring", "REVOKED; dropped after one TTL", false, ignoreTheEnd},
	{10, "close one of two copies of a program", "the other is told at once", false, closeACopy},
	{27, "escapes, newlines, bad UTF-8 and 64 KiB in program, host, reason, name and header", "refused; lists and logs stay one line each", false, foulTexts},
}

func TestAttacks(t *testing.T) {
	open, secure := newGround(t, false), newGround(t, true)
	for _, a := range attacks {
		t.Run(a.name(), func(t *testing.T) {
			t.Logf("attack %d: %s; expected: %s", a.number, a.what, a.expected)
			g := open
			if a.secure {
				g = secure
			}
			a.run(&world{T: t, ground: g, prefix: a.name() + "/"})
		})
	}
}
