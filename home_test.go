package conclave

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/api"
)

// fakeHome keeps sessions for the locks that an algorithm guards. It is at one server.
type fakeHome struct {
	state *state
	at    int    // the index of the server
	live  string // the prefix that the algorithm guards, or ""
	seat  byte
	last  *attached
	asked int // streams
}

// guard has an algorithm guard the names that begin with a prefix, with a home at a server.
func (c *cluster) guard(prefix string, at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.home = fakeHome{state: newState(), at: at, live: prefix, seat: 1}
	live := func(name string) bool { return c.home.live != "" && strings.HasPrefix(name, c.home.live) }
	c.state.guard = func(name string) *api.Guard {
		if live(name) {
			return &api.Guard{Prefix: c.home.live, Algorithm: "suzuki-kasami"}
		}
		return nil
	}
	c.home.state.guard = func(name string) *api.Guard {
		if live(name) {
			return nil
		}
		return new(api.Guard)
	}
}

func (s *server) AttachHome(stream grpc.BidiStreamingServer[api.ClientFrame, api.ServerFrame]) error {
	c := s.cluster
	c.mu.Lock()
	c.home.asked++
	welcome := &api.Welcome{Cluster: c.identity, Server: uint64(s.index + 1), Version: c.version, Seat: []byte{15: c.home.seat}, LeaseNs: 1.2e9}
	a := &attached{server: s, out: make(chan *api.ServerFrame, 1<<14), gone: stream.Context().Done()}
	a.send(&api.ServerFrame{Welcome: welcome})
	if c.home.at != s.index {
		a.send(&api.ServerFrame{Farewell: &api.Farewell{Code: api.Code_CODE_NOT_MEMBER, Members: []string{c.servers[c.home.at].address}}})
	}
	c.home.last = a
	c.mu.Unlock()
	go func() {
		for {
			frame, err := stream.Recv()
			if err != nil {
				return
			}
			c.mu.Lock()
			for _, req := range frame.Requests {
				for _, rep := range c.home.state.apply(req, c.now()) {
					rep.RemainingNs = min(rep.RemainingNs, 1.2e9)
					a.send(&api.ServerFrame{Replies: []*api.Reply{rep}})
				}
			}
			c.mu.Unlock()
		}
	}()
	for {
		select {
		case <-a.gone:
			return stream.Context().Err()
		case f := <-a.out:
			if err := stream.Send(f); err != nil || f.Farewell != nil {
				return err
			}
		}
	}
}

// A lock that an algorithm guards is taken at a home, those of agreement at the leader,
// with one client. When the guard has changed the client finds out by itself.
func TestLocksAreTakenWhereTheyAreGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.guard("live/", 2)
		client := c.connect()
		home, err := client.Lock(t.Context(), "live/a")
		if err != nil {
			t.Fatal(err)
		}
		agreed, err := client.Lock(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		left := home.Deadline() - time.Duration(c.now())
		if left > 1080*time.Millisecond {
			t.Errorf("the hold at the home is believed for %v, beyond the lease of its seat", left)
		}
		if _, err = client.TryLock(t.Context(), "live/a"); !errors.Is(err, ErrHeld) {
			t.Errorf("a try of what is held ends with %v", err)
		}
		time.Sleep(3 * time.Second) // both sessions are renewed
		for _, l := range []*Lock{home, agreed} {
			if _, err = l.Fence(); err != nil {
				t.Error(err)
			}
			if err = l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		c.mu.Lock()
		c.home.live = ""
		c.mu.Unlock()
		if _, err = client.Lock(t.Context(), "live/a"); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := len(c.state.resources); n == 0 || len(c.home.state.resources) != 0 {
			t.Errorf("agreement has %d resources, the home %d", n, len(c.home.state.resources))
		}
	})
}

func TestALockGuardedByAnAlgorithmIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.guard("live/", 0)
		client := c.connect()
		for _, option := range []LockOption{Shared(), Limit(2)} {
			_, err := client.Lock(t.Context(), "live/a", option)
			var guarded *GuardedError
			if !errors.As(err, &guarded) || guarded.Algorithm != "suzuki-kasami" || guarded.Prefix != "live/" {
				t.Errorf("got %v", err)
			}
		}
	})
}

// A home that lost its seat has forgotten what was held.
func TestALockIsLostWithTheSeatOfItsHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.guard("live/", 0)
		client := c.connect()
		lock, err := client.Lock(t.Context(), "live/a")
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		c.home.state, c.home.seat = newState(), 2
		c.home.last.send(&api.ServerFrame{Farewell: &api.Farewell{Code: api.Code_CODE_NOT_MEMBER}})
		c.mu.Unlock()
		<-lock.Context().Done()
		if err = lock.Context().Err(); err == nil {
			t.Error("the context has no error")
		}
		if _, err = lock.Fence(); !errors.Is(err, ErrLost) {
			t.Errorf("the fence: %v", err)
		}
		if _, err = client.Lock(t.Context(), "live/a"); err != nil {
			t.Error(err)
		}
	})
}
