package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/access"
)

// What a principal may have under way at one server.
const (
	mostStreams = 256
	mostWatches = 1000
	mostCalls   = 1000
)

// part is what a call takes a share of.
type part int

const (
	aCall part = iota
	aStream
	aWatch
	parts
)

var partNames, partMost = [parts]string{"calls", "streams", "watches"}, [parts]int{mostCalls, mostStreams, mostWatches}

// partOf returns what a method of gRPC takes a share of.
func partOf(method string) part {
	switch method {
	case "Attach", "AttachHome":
		return aStream
	case "Watch", "Observe", "AuditLog":
		return aWatch
	}
	return aCall
}

// partOfRoute is partOf for a pattern of HTTP.
func partOfRoute(pattern string) part {
	if strings.HasPrefix(pattern, http.MethodGet) && strings.Contains(pattern, "/watch") {
		return aWatch
	}
	return aCall
}

// shares counts what each principal has under way at this server.
type shares struct {
	mu sync.Mutex
	of map[string]*[parts]int
}

// crowdedError refuses a call of a principal that has too many under way.
type crowdedError struct {
	who    string
	part   part
	server uint64
}

func (e *crowdedError) Error() string {
	return fmt.Sprintf("%.64s has %d of %d %s at server %d: end some", e.who, partMost[e.part], partMost[e.part], partNames[e.part], e.server)
}

// overQuota is the error of a call that is beyond a quota which a server counts by itself.
type overQuota interface {
	error
	overQuota()
}

func (*crowdedError) overQuota() {}

// GRPCStatus tells it to whoever calls by gRPC.
func (e *crowdedError) GRPCStatus() *status.Status {
	return status.New(codes.ResourceExhausted, e.Error())
}

// take takes a share, if there is one left, and reports whether that was so.
func (s *shares) take(who string, p part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]*[parts]int)
	}
	has := s.of[who]
	if has == nil {
		has = new([parts]int)
		s.of[who] = has
	}
	if has[p] >= partMost[p] {
		return false
	}
	has[p]++
	return true
}

// leave gives a share back.
func (s *shares) leave(who string, p part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.of[who]
	if has[p]--; *has == ([parts]int{}) {
		delete(s.of, who)
	}
}

// share has a call of a client take a share, and returns what gives it back. Without rules
// of access, and for whoever runs the server, there is no bound: programs that prove nothing
// are all one then.
func (s *Server) share(who caller, p part) (leave func(), err error) {
	if who.Via == "local" || s.rules().Mode() != access.Closed {
		return func() {}, nil
	}
	if !s.shares.take(who.Principal, p) {
		return nil, &crowdedError{who.Principal, p, s.cfg.ID}
	}
	return func() { s.shares.leave(who.Principal, p) }, nil
}
