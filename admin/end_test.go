package admin_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// TestEndSession lets a client end the session of another client, by the id that both
// see.
func TestEndSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 2)
		holder, operator := cl.Connect(), cl.Connect()
		if id := holder.SessionID(); id != "" {
			t.Errorf("before it is open the session is %q", id)
		}
		l := clienttest.Lock(t, holder, "x")
		id := holder.SessionID()
		live, err := admin.New(operator).Sessions(t.Context())
		if err != nil || len(live) != 1 || live[0].ID != id || !strings.HasPrefix(id, "s-") {
			t.Fatalf("the holder has the session %q, listed are %v, %v", id, live, err)
		}
		if secret := cl.Secret(l); strings.Contains(id, secret) || strings.Contains(id, hex.EncodeToString([]byte(secret))) {
			t.Errorf("the id %q shows the secret", id)
		}
		if holds, err := admin.New(operator).EndSession(t.Context(), id, "leaked"); err != nil || holds != 1 {
			t.Fatalf("got %d, %v", holds, err)
		}
		_, err = admin.New(operator).EndSession(t.Context(), id, "leaked")
		var refused *conclave.RequestError
		if !errors.Is(err, conclave.ErrNotFound) || !errors.As(err, &refused) || refused.Name != id {
			t.Errorf("the end of a session that is gone: %v", err)
		}
	})
}

func TestEndSessionRefusesWhatIsNoID(t *testing.T) {
	operator := admin.New(new(conclave.Client))
	for _, test := range []struct{ id, reason, says string }{
		{"", "", `session: "": expected a public id`},
		{strings.Repeat("0", 32), "", "expected a public id"},
		{"s-" + strings.Repeat("0", 31), "", "expected a public id"},
		{"s-" + strings.Repeat("x", 32), "", "expected a public id"},
		{"s-" + strings.Repeat("0", 32), strings.Repeat("x", 257), "reason: 257 bytes: must have at most 256"},
	} {
		if _, err := operator.EndSession(t.Context(), test.id, test.reason); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, want %q", test.id, err, test.says)
		}
	}
}
