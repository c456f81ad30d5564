package clienttest

import (
	"strings"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/api"
)

// home keeps sessions for the locks that an algorithm guards. It is at one server.
type home struct {
	state  *State
	at     int    // the index of the server
	prefix string // that the algorithm guards, or ""
	seat   byte
	last   *attached
}

// Guard has an algorithm guard the names that begin with a prefix, with a home at a server.
func (c *Cluster) Guard(prefix string, at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.home = home{state: newState(), at: at, prefix: prefix, seat: 1}
	guarded := func(name string) bool { return c.home.prefix != "" && strings.HasPrefix(name, c.home.prefix) }
	c.state.Guard = func(name string) *api.Guard {
		if guarded(name) {
			return &api.Guard{Prefix: c.home.prefix, Algorithm: "suzuki-kasami"}
		}
		return nil
	}
	c.home.state.Guard = func(name string) *api.Guard {
		if guarded(name) {
			return nil
		}
		return new(api.Guard)
	}
}

func (s *Server) AttachHome(stream grpc.BidiStreamingServer[api.ClientFrame, api.ServerFrame]) error {
	c := s.cluster
	c.mu.Lock()
	welcome := &api.Welcome{Cluster: c.Identity, Server: uint64(s.index + 1), Version: c.Version, Seat: []byte{15: c.home.seat}, LeaseNs: 1.2e9}
	a := &attached{server: s, out: make(chan *api.ServerFrame, 1<<14), gone: stream.Context().Done()}
	a.send(&api.ServerFrame{Welcome: welcome})
	if c.home.at != s.index {
		a.send(&api.ServerFrame{Farewell: &api.Farewell{Code: api.Code_CODE_NOT_MEMBER, Members: []string{c.Servers[c.home.at].Address}}})
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
				for _, rep := range c.home.state.apply(req, c.Now()) {
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

// Unguard lets agreement guard all names.
func (c *Cluster) Unguard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.home.prefix = ""
}

// LoseSeat makes the home forget all that is held there, and end its last stream.
func (c *Cluster) LoseSeat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.home.state, c.home.seat = newState(), 2
	c.home.last.send(&api.ServerFrame{Farewell: &api.Farewell{Code: api.Code_CODE_NOT_MEMBER}})
}

// AtHome returns the number of locks that are held at the home.
func (c *Cluster) AtHome() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.home.state.Resources)
}
