package server

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/conclave-io/conclave/internal/ops"
	"github.com/conclave-io/conclave/service/registry"
)

// scrapePatience is how long the question whether a server is ready waits for the
// node, which may be busy.
const scrapePatience = 2 * time.Second

// metrics are what a server counts itself. Each is in ops.Metrics, and so are those that
// are read from elsewhere at a scrape: see readings.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	calls    *prometheus.HistogramVec
	reloads  *prometheus.CounterVec
	// latencies are those of requests, once more, in narrower classes.
	latencies latencies
	// attached counts the programs with a stream, watching the elections and prefixes
	// that are watched.
	attached, watching atomic.Int64

	byOp map[registry.Op]prometheus.Observer
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: histogram("conclave_request_seconds"),
		calls:    histogram("conclave_call_seconds"),
		reloads:  counter("conclave_certificate_reloads_total"),
		byOp:     make(map[registry.Op]prometheus.Observer),
	}
	for _, result := range []string{"ok", "failed"} {
		m.reloads.WithLabelValues(result) // from 0 on
	}
	for op, name := range opNames {
		m.byOp[op] = m.requests.WithLabelValues(name)
	}
	m.registry.MustRegister(m.requests, m.calls, m.reloads, newScraped(s),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// histogram makes a metric of the list.
func histogram(name string) *prometheus.HistogramVec {
	m := ops.Must(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: ops.Tick()}, m.Labels)
}

// counter makes a metric of the list.
func counter(name string) *prometheus.CounterVec {
	m := ops.Must(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

func (m *metrics) observe(op registry.Op, took time.Duration) {
	m.byOp[op].Observe(took.Seconds())
	m.latencies.note(took)
}

func (m *metrics) call(method string, begun time.Time) {
	m.calls.WithLabelValues(method).Observe(time.Since(begun).Seconds())
}

// opNames are the operations as figures name them.
var opNames = map[registry.Op]string{
	registry.OpOpen: "open", registry.OpRenew: "renew", registry.OpClose: "close",
	registry.OpAcquire: "acquire", registry.OpRelease: "release",
	registry.OpCancel: "cancel", registry.OpUpdate: "update",
	registry.OpRevoke: "revoke", registry.OpTransfer: "transfer",
}
