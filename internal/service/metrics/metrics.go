// Package metrics has the metrics of a server: those that it counts, those that are read at a
// scrape, and the figures in its status.
package metrics

import (
	"iter"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/ops"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Source is the server that the metrics are about.
type Source struct {
	ID      uint64
	Version string
	Node    *node.Node
	// Dir is the data directory, or "" if the server has none.
	Dir string
	// AccessMode returns the access mode in force at the server.
	AccessMode func() access.Mode
	// Ready reports whether the server can serve calls. It does not wait.
	Ready func() bool
	// Certificates yields the use of each certificate of the server, and when it expires.
	Certificates func() iter.Seq2[string, time.Time]
	// Audit is the audit log of the server.
	Audit AuditLog
}

// AuditLog counts what a server writes to its audit log.
type AuditLog interface {
	// Lines is the number of lines written, and Failures that of failed writes.
	Lines() int64
	Failures() int64
	// Newest is the time of the last line, in ns since 1970; 0 if there is none.
	Newest() int64
}

// Metrics are the metrics of a server. Those that it counts itself are listed in ops.Metrics, like
// those that are read from elsewhere at a scrape: see readings.
type Metrics struct {
	// Attached counts the programs with a stream, Watching the watched elections and prefixes,
	// and Relayed the streams passed on to the leader.
	Attached, Watching, Relayed atomic.Int64
	// RateRefusals counts requests beyond those per second that a principal may send.
	RateRefusals atomic.Int64
	// LastBackup is when a client received the end of a backup from this server, ns since 1970.
	LastBackup atomic.Int64

	of       Source
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	calls    *prometheus.HistogramVec
	reloads  *prometheus.CounterVec
	// responses are first replies, denials refusals by the rules, and authFailures callers with
	// an invalid proof.
	responses, denials, authFailures *prometheus.CounterVec
	// latencies are the latencies of requests again, in finer buckets.
	latencies latencies
	usage     usage

	byOp map[registry.Op]prometheus.Observer
}

// New returns the metrics of a server.
func New(of Source) *Metrics {
	m := &Metrics{
		of:        of,
		registry:  prometheus.NewRegistry(),
		requests:  durations("conclave_request_seconds"),
		calls:     durations("conclave_call_seconds"),
		reloads:   counter("conclave_certificate_reloads_total"),
		responses: counter("conclave_responses_total"), denials: counter("conclave_denied_total"), authFailures: counter("conclave_auth_failures_total"),
		byOp: make(map[registry.Op]prometheus.Observer),
	}
	for _, result := range []string{"ok", "failed"} {
		m.reloads.WithLabelValues(result) // so that the counters start at 0
	}
	for op, name := range opNames {
		m.byOp[op] = m.requests.WithLabelValues(name)
	}
	m.registry.MustRegister(m.requests, m.calls, m.reloads, m.responses, m.denials, m.authFailures, newScraped(of, m),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics to Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
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

// Observe notes the first reply to a request on a stream.
func (m *Metrics) Observe(op registry.Op, code registry.Code, took time.Duration) {
	m.byOp[op].Observe(took.Seconds())
	m.responses.WithLabelValues(opNames[op], api.MeaningOf(api.Code(code)).Name).Inc()
	m.latencies.note(took)
	if code == registry.Denied {
		m.Denied(verbOf[op])
	}
}

// Denied counts a refusal by the rules of access.
func (m *Metrics) Denied(verb access.Verb) { m.denials.WithLabelValues(verb.String()).Inc() }

// Called notes the duration of a call.
func (m *Metrics) Called(name string, begun time.Time) {
	m.calls.WithLabelValues(name).Observe(time.Since(begun).Seconds())
}

// AuthFailure counts a caller whose proof, a "token" or a "certificate", is invalid, and why.
func (m *Metrics) AuthFailure(proof, why string) { m.authFailures.WithLabelValues(proof, why).Inc() }

// Reloaded counts a reload of the certificates.
func (m *Metrics) Reloaded(err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// verbOf has the verb that a request on a stream needs.
var verbOf = map[registry.Op]access.Verb{
	registry.OpOpen: access.Hold, registry.OpRenew: access.Hold, registry.OpClose: access.Hold, registry.OpAcquire: access.Hold, registry.OpRelease: access.Hold,
	registry.OpCancel: access.Hold, registry.OpUpdate: access.Hold, registry.OpTransfer: access.Hold,
	registry.OpRevoke: access.Revoke,
}

// opNames are the names of operations in metrics.
var opNames = map[registry.Op]string{
	registry.OpOpen: "open", registry.OpRenew: "renew", registry.OpClose: "close",
	registry.OpAcquire: "acquire", registry.OpRelease: "release",
	registry.OpCancel: "cancel", registry.OpUpdate: "update",
	registry.OpRevoke: "revoke", registry.OpTransfer: "transfer",
}
