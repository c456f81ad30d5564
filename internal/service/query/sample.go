package query

import (
	"context"
	"sync"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
)

const (
	// askEvery is the least time between two questions to another server about its status: all
	// watchers share the answers.
	askEvery = 400 * time.Millisecond
	// answerWithin is how long an answer may take before it counts as missing, and
	// answerSoon how long a sample waits for it.
	answerWithin, answerSoon = 2 * time.Second, 200 * time.Millisecond
)

// reports are the last answers of the other servers about their status.
type reports struct {
	mu sync.Mutex
	of map[uint64]*report
}

// expiry returns when the first certificate of a server expires, by its last answer.
func (r *reports) expiry(id uint64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.of[id]; known != nil {
		return known.status.GetCertificateExpiresUnixNs()
	}
	return 0
}

// report is the last answer of one server.
type report struct {
	asked   time.Time
	done    chan struct{} // closed when the last question was answered or has failed
	came    time.Time     // when status arrived, or zero
	status  *api.StatusResponse
	problem string // why there was no answer to the last question
}

// Sample returns the state of all servers that answer quickly.
func (c *Calls) Sample(ctx context.Context) (*jsonform.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	who, err := authn.CallerOf(ctx)
	if err == nil {
		err = c.cfg.Gate.Permit(ctx, who, access.OnCluster(access.Status))
	}
	if err != nil {
		return nil, err
	}
	own, err := c.Describe(ctx)
	if err != nil {
		return nil, err
	}
	body := &jsonform.Sample{Status: jsonform.StatusOf(own), Time: time.Now().UTC()}
	var asked []*report
	for _, m := range own.GetMembers() {
		if m.GetId() != c.cfg.Server {
			asked = append(asked, c.ask(m.GetId()))
		}
	}
	c.awaitSome(ctx, asked)
	for _, m := range own.GetMembers() {
		if m.GetId() == c.cfg.Server {
			one := *body.Status
			one.Members = nil
			body.Servers = append(body.Servers, jsonform.Report{ID: c.cfg.Server, At: body.Time, Status: &one})
			continue
		}
		said, members := c.reports.read(m.GetId())
		body.Servers = append(body.Servers, said)
		if m.GetId() == own.GetLeader() && said.Problem == "" && members != nil {
			body.Members = members
		}
	}
	return body, nil
}

// askExpiries asks the other servers when their certificates expire.
func (c *Calls) askExpiries(ctx context.Context, answer *api.StatusResponse) {
	var asked []*report
	for _, m := range answer.GetMembers() {
		if m.GetId() != c.cfg.Server {
			asked = append(asked, c.ask(m.GetId()))
		}
	}
	c.awaitSome(ctx, asked)
	for _, m := range answer.GetMembers() {
		m.CertificateExpiresUnixNs = c.reports.expiry(m.GetId())
		if m.GetId() == c.cfg.Server {
			m.CertificateExpiresUnixNs = answer.GetCertificateExpiresUnixNs()
		}
	}
}

// ask asks another server for its status, unless that was done a moment ago.
func (c *Calls) ask(id uint64) *report {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	r := c.reports.of[id]
	if r == nil {
		r = &report{done: make(chan struct{})}
		close(r.done)
		if c.reports.of == nil {
			c.reports.of = make(map[uint64]*report)
		}
		c.reports.of[id] = r
	}
	select {
	case <-r.done:
	default:
		return r // the last question has no answer yet
	}
	if time.Since(r.asked) < askEvery {
		return r
	}
	r.asked, r.done = time.Now(), make(chan struct{})
	c.cfg.Go(func() {
		status, err := c.statusOf(id)
		c.reports.mu.Lock()
		defer c.reports.mu.Unlock()
		if r.problem = ""; err != nil {
			r.problem = api.Reason(err)
		} else {
			r.status, r.came = status, time.Now().UTC()
		}
		close(r.done)
	})
	return r
}

// statusOf calls another server for its status.
func (c *Calls) statusOf(id uint64) (*api.StatusResponse, error) {
	ctx, stop := c.cfg.Forward.Serving(context.Background())
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	ctx, client, err := c.cfg.Forward.Reach(authn.WithCaller(ctx, authn.Local(c.cfg.Server)), id)
	if err != nil {
		return nil, err
	}
	return client.Status(ctx, &api.StatusRequest{})
}

// awaitSome waits until the servers have answered, but not for long: late answers are part
// of the next sample.
func (c *Calls) awaitSome(ctx context.Context, asked []*report) {
	ctx, cancel := context.WithTimeout(ctx, answerSoon)
	defer cancel()
	for _, r := range asked {
		c.reports.mu.Lock()
		done := r.done
		c.reports.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// read returns the last answer of a server, and the members as that server sees them.
func (r *reports) read(id uint64) (jsonform.Report, []jsonform.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.of[id]
	said := jsonform.Report{ID: id, At: known.came, Problem: known.problem}
	if known.status == nil {
		return said, nil
	}
	said.Status = jsonform.StatusOf(known.status)
	members := said.Status.Members
	said.Status.Members = nil
	return said, members
}
