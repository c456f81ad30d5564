package holders

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/api"
)

// Verify finds a lock whose state differs from the acknowledged one.
func TestVerify(t *testing.T) {
	c := New(2, 2, 0, nil)
	for i, s := range c.Sessions {
		s.Public, s.Fences = hex.EncodeToString([]byte{byte(i)}), []uint64{uint64(10 + 2*i), uint64(11 + 2*i)}
	}
	third := func() *api.Resource {
		return &api.Resource{Name: "held-0000000002", Holders: []*api.Holder{{Session: []byte{1}, Fence: 12}}}
	}
	if err := c.verify(2, third()); err != nil {
		t.Errorf("the lock is held as it should be: %v", err)
	}
	for what, change := range map[string]func(*api.Resource){
		"missing":  func(r *api.Resource) { r.Name = "held-0000000003" },
		"free":     func(r *api.Resource) { r.Holders = nil },
		"another":  func(r *api.Resource) { r.Holders[0].Session = []byte{0} },
		"again":    func(r *api.Resource) { r.Holders[0].Fence++ },
		"together": func(r *api.Resource) { r.Holders = append(r.Holders, r.Holders[0]) },
	} {
		res := third()
		change(res)
		if err := c.verify(2, res); err == nil || !strings.Contains(err.Error(), "held-0000000002: 01 12") {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	if c.verify(4, third()) == nil {
		t.Error("a lock that nobody acquired is accepted")
	}
}
