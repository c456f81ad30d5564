//go:build linux

package e2e

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
)

// The members elect a coordinator, which coordinates the locks. When it is killed,
// another one is elected, and locks are granted. After its restart, it does not
// coordinate until an operator calls an election.
func TestAnElectedCoordinator(t *testing.T) {
	t.Parallel()
	c := guarded(t, 3)
	client := dial(t, conclave.Config{Servers: c.Addresses()})
	refused(t, 125, []string{`"swim+buly"`, `did you mean "swim+bully"?`}, "view", "set", "swim+buly", "--servers", strings.Join(c.Addresses(), ","))
	refused(t, 125, []string{"no algorithm guards any lock"}, "view", "elect", "--servers", strings.Join(c.Addresses(), ","))
	tell(t, c, "namespace", "set", "a/", "--algorithm", "central", "--option", "coordinator=elected")
	members(t, client, 3)
	tell(t, c, "view", "set", "swim+bully", "--reason", "a test")
	elected := func(server uint64, members int) func() bool {
		return func() bool {
			v, err := admin.New(client).Homes(within(t))
			if err != nil || v.Coordinator != server || len(v.Members) != members {
				return false
			}
			for _, m := range v.Members {
				if m.Home == nil || m.Home.State != "OPEN" || m.Home.Epoch != v.Epoch || m.Home.Detector == nil || m.Home.Detector.Stack != "swim+bully" {
					return false
				}
			}
			return true
		}
	}
	until(t, "server 3 coordinates", elected(3, 3))
	text := attend(t, c.Addresses()[0], "watch", "a/")
	held, err := client.Lock(within(t), "a/y")
	if err != nil {
		t.Fatal(err)
	}
	text.await(t, "a/y: held by process ")
	if err := held.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	text.await(t, "a/y: free")
	all := newEntries()
	enter := func() {
		l, err := client.Lock(within(t), "a/x")
		if err != nil {
			t.Fatal(err)
		}
		all.enter(t, l)
		all.leave(l)
		if err := l.Unlock(within(t)); err != nil {
			t.Error(err)
		}
	}
	enter()
	if err := c.Kill(3); err != nil {
		t.Fatal(err)
	}
	until(t, "server 2 coordinates when server 3 has crashed", elected(2, 2))
	text.await(t, "begins: the seat of server 3 has ended")
	text.await(t, "begins: server 2 was elected")
	enter()
	if err := c.Restart(3); err != nil {
		t.Fatal(err)
	}
	until(t, "server 3 takes part again", elected(2, 3))
	if said := tell(t, c, "view", "elect"); !strings.Contains(said, "servers 1 2 3 elect") {
		t.Errorf("view elect prints %q", said)
	}
	until(t, "server 3 coordinates again", elected(3, 3))
	enter()
	for _, want := range []string{"watched by swim+bully", "server 2 was elected", "the seat of server 3 has ended"} {
		if said := tell(t, c, "view"); !strings.Contains(said, want) {
			t.Errorf("view does not tell that %s:\n%s", want, said)
		}
	}
}
