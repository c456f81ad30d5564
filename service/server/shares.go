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

// The most that a principal may have under way at one server.
const (
	mostStreams = 256
	mostWatches = 1000
	mostCalls   = 1000
)

// part is the kind of share that a call takes.
type part int

const (
	aCall part = iota
	aStream
	aWatch
	parts
)

var partNames, partMost = [parts]string{"calls", "streams", "watches"}, [parts]int{mostCalls, mostStreams, mostWatches}

// partOf returns the kind of share that a gRPC method takes.
func partOf(method string) part {
	switch method {
	case "Attach", "AttachHome":
		return aStream
	case "Watch", "Observe", "AuditLog":
		return aWatch
	}
	return aCall
}

// partOfRoute is partOf for an HTTP pattern.
func partOfRoute(pattern string) part {
	if strings.HasPrefix(pattern, http.MethodGet) && strings.Contains(pattern, "/watch") {
		return aWatch
	}
	return aCall
}

// shares counts the calls and streams under way of each principal.
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

// GRPCStatus is the error for callers over gRPC.
func (e *crowdedError) GRPCStatus() *status.Status {
	return status.New(codes.ResourceExhausted, e.Error())
}

// take takes a share, and reports whether there was one left.
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

// leave returns a share.
func (s *shares) leave(who string, p part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.of[who]
	if has[p]--; *has == ([parts]int{}) {
		delete(s.of, who)
	}
}

// share takes a share for a call of a client, and returns the function that returns it. There
// is no limit without access rules, because then all programs without a proof are the same
// principal, nor for the user who runs the server.
func (s *Server) share(who caller, p part) (leave func(), err error) {
	if who.Via == "local" || s.rules().Mode() != access.Closed {
		return func() {}, nil
	}
	if !s.shares.take(who.Principal, p) {
		return nil, &crowdedError{who.Principal, p, s.cfg.ID}
	}
	return func() { s.shares.leave(who.Principal, p) }, nil
}
