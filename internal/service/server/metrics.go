package server

import (
	"path"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/ops"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// scrapeTimeout is how long a scrape waits for the node, which may be busy, to find
// out whether the server is ready.
const scrapeTimeout = 2 * time.Second

// metrics are the metrics that a server counts itself. They are listed in ops.Metrics, like
// those that are read from elsewhere at a scrape: see readings.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	calls    *prometheus.HistogramVec
	reloads  *prometheus.CounterVec
	// responses are first replies, denials refusals by the rules, and imposters callers with
	// an invalid proof.
	responses, denials, imposters *prometheus.CounterVec
	// backup is when a client received the end of a backup from this server, ns since 1970.
	backup atomic.Int64
	// latencies are the latencies of requests again, in finer buckets.
	latencies latencies
	// attached counts the programs with a stream, and watching the watched elections and
	// prefixes.
	attached, watching atomic.Int64
	// hasty counts requests beyond those per second that a principal may send.
	hasty atomic.Int64

	byOp map[registry.Op]prometheus.Observer
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		requests:  durations("conclave_request_seconds"),
		calls:     durations("conclave_call_seconds"),
		reloads:   counter("conclave_certificate_reloads_total"),
		responses: counter("conclave_responses_total"), denials: counter("conclave_denied_total"), imposters: counter("conclave_auth_failures_total"),
		byOp: make(map[registry.Op]prometheus.Observer),
	}
	for _, result := range []string{"ok", "failed"} {
		m.reloads.WithLabelValues(result) // so that the counters start at 0
	}
	for op, name := range opNames {
		m.byOp[op] = m.requests.WithLabelValues(name)
	}
	m.registry.MustRegister(m.requests, m.calls, m.reloads, m.responses, m.denials, m.imposters, newScraped(s),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// durations creates a histogram of ops.Metrics, with buckets from 100 us to 13 s.
func durations(name string) *prometheus.HistogramVec {
	m := ops.Must(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18)}, m.Labels)
}

// counter creates a counter of ops.Metrics.
func counter(name string) *prometheus.CounterVec {
	m := ops.Must(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// observe notes the first reply to a request on a stream.
func (m *metrics) observe(op registry.Op, code registry.Code, took time.Duration) {
	m.byOp[op].Observe(took.Seconds())
	m.responses.WithLabelValues(opNames[op], api.MeaningOf(api.Code(code)).Name).Inc()
	m.latencies.note(took)
	if code == registry.Denied {
		m.denied(verbOf[op])
	}
}

// denied counts a refusal by the rules of access.
func (m *metrics) denied(verb access.Verb) { m.denials.WithLabelValues(verb.String()).Inc() }

// answered counts the refusal of a call if err is a refusal by the access rules.
func (m *metrics) answered(wanted need, err error) {
	if status.Code(err) == codes.PermissionDenied && wanted.verb != 0 {
		m.denied(wanted.verb)
	}
}

// verbOf has the verb that a request on a stream needs.
var verbOf = map[registry.Op]access.Verb{
	registry.OpOpen: access.Hold, registry.OpRenew: access.Hold, registry.OpClose: access.Hold, registry.OpAcquire: access.Hold, registry.OpRelease: access.Hold,
	registry.OpCancel: access.Hold, registry.OpUpdate: access.Hold, registry.OpTransfer: access.Hold,
	registry.OpRevoke: access.Revoke,
}

// served notes the duration of a gRPC call, given the full name of its method.
func (m *metrics) served(method string, begun time.Time) {
	if name := methods[path.Base(method)].timed; name != "" {
		m.call(name, begun)
	}
}

func (m *metrics) call(method string, begun time.Time) {
	m.calls.WithLabelValues(method).Observe(time.Since(begun).Seconds())
}

// opNames are the names of operations in metrics.
var opNames = map[registry.Op]string{
	registry.OpOpen: "open", registry.OpRenew: "renew", registry.OpClose: "close",
	registry.OpAcquire: "acquire", registry.OpRelease: "release",
	registry.OpCancel: "cancel", registry.OpUpdate: "update",
	registry.OpRevoke: "revoke", registry.OpTransfer: "transfer",
}
