package admission

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/stream"
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

// shareError refuses a call of a principal that has too many under way.
type shareError struct {
	who    string
	part   part
	server uint64
}

func (e *shareError) Error() string {
	return fmt.Sprintf("%.64s has %d of %d %s at server %d: end some", e.who, partMost[e.part], partMost[e.part], partNames[e.part], e.server)
}

// Code implements api.CodedError.
func (*shareError) Code() api.Code { return api.Code_CODE_QUOTA }

// GRPCStatus is the error for callers over gRPC.
func (e *shareError) GRPCStatus() *status.Status {
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
func (g *Gate) share(who stream.Caller, p part) (leave func(), err error) {
	if who.Via == "local" || g.rules().Mode() != access.Closed {
		return func() {}, nil
	}
	if !g.shares.take(who.Principal, p) {
		return nil, &shareError{who.Principal, p, g.cfg.Server}
	}
	return func() { g.shares.leave(who.Principal, p) }, nil
}

// mostRates is from how many principals on those are forgotten that send nothing now.
const mostRates = 1024

// rates bounds how many requests per second a server takes from each principal. Whoever
// was silent may send those of one second at once.
type rates struct {
	mu sync.Mutex
	// due is until when the requests that were taken last, at the rate that is allowed, ns.
	due map[string]int64
}

// take takes a request of a principal at a time in ns, if it may send most per second, and
// reports whether that was so.
func (r *rates) take(who string, most uint64, now int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	gap := int64(uint64(time.Second) / most)
	due := max(r.due[who], now) + gap
	if due-now > int64(time.Second) {
		return false
	}
	if r.due == nil || len(r.due) >= mostRates {
		r.forget(now)
	}
	r.due[who] = due
	return true
}

// forget drops those who have sent nothing for long enough.
func (r *rates) forget(now int64) {
	kept := make(map[string]int64)
	for who, due := range r.due {
		if due > now {
			kept[who] = due
		}
	}
	r.due = kept
}

// pace reports why a request of a caller is not taken now. Single calls count at the server
// that has them from the caller, and requests on a stream where they are read: at the leader,
// or at a home.
func (g *Gate) pace(who stream.Caller) error {
	most := g.rules().Pace(who.Principal)
	if most == 0 || g.rates.take(who.Principal, most, g.monotonic()) {
		return nil
	}
	g.cfg.Metrics.RateRefusals.Add(1)
	return &rateError{who.Principal, most, g.cfg.Server}
}

// rateError refuses a request of a principal that sends too many.
type rateError struct {
	who    string
	most   uint64
	server uint64
}

// Code implements api.CodedError.
func (*rateError) Code() api.Code { return api.Code_CODE_QUOTA }

func (e *rateError) Error() string {
	return fmt.Sprintf("%.64s sends more than %d requests per second to server %d: send fewer, or have the quota raised", e.who, e.most, e.server)
}

// GRPCStatus tells it to whoever calls by gRPC.
func (e *rateError) GRPCStatus() *status.Status {
	return status.New(codes.ResourceExhausted, e.Error())
}

// TooFast returns the refusal of a request on a stream that comes too soon, or nil.
func (g *Gate) TooFast(who stream.Caller, req *api.Request) *api.Reply {
	if always(req) {
		return nil
	}
	if err := g.pace(who); err != nil {
		return stream.Refusal(req, api.CodeOf(err), api.Reason(err))
	}
	return nil
}

// always reports whether a request is taken however many there are: without it a lock would
// be lost, or kept longer than its holder wants.
func always(req *api.Request) bool {
	switch req.GetOp().(type) {
	case *api.Request_Renew, *api.Request_Release, *api.Request_Cancel, *api.Request_Close:
		return true
	}
	return false
}

// counted reports whether a call over gRPC counts as one request. On a stream each of its
// requests does.
func counted(method string, req any) bool {
	switch method {
	case "Attach", "AttachHome", "Ping":
		return false
	case "Do":
		req, is := req.(*api.Request)
		return !is || !always(req)
	}
	return true
}

// countedRoute is counted for a pattern of HTTP.
func countedRoute(pattern string) bool {
	switch pattern {
	case "POST /v1/renew", "POST /v1/release", "POST /v1/resign", "POST /v1/close":
		return false
	}
	return true
}
