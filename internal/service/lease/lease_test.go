package lease

import (
	"encoding/binary"
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// A leader that inherits many sessions records the silent ones a few at a time, and each
// of them once.
func TestManySilentSessions(t *testing.T) {
	const (
		sessions = 100_000
		ttl      = 600e9
		tick     = 20e6
	)
	l := NewTable()
	for i := range sessions {
		var id registry.SessionID
		binary.BigEndian.PutUint64(id[:], uint64(i)+1)
		l.Inherit(registry.Session{ID: id, TTL: ttl}, 0)
	}
	most, sum := 0, 0
	for now := int64(0); now <= 10e9; now += tick {
		expired, silent := l.Due(now)
		if len(expired) > 0 {
			t.Fatalf("%d sessions expire %d ms after the leader inherited them", len(expired), now/1e6)
		}
		most, sum = max(most, len(silent)), sum+len(silent)
	}
	if most > 2*atATime {
		t.Errorf("%d sessions are put on record in one tick", most)
	}
	if sum != sessions {
		t.Errorf("%d times a session is put on record within 10 s: expected %d", sum, sessions)
	}
}
