package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

// scrapePatience is how long a scrape waits for the node, which may be busy.
const scrapePatience = 2 * time.Second

// metrics are the figures of a server beyond those of its node.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	calls    *prometheus.HistogramVec
	streams  prometheus.Gauge
	watches  prometheus.Gauge

	byOp map[registry.Op]prometheus.Observer
}

func newMetrics(s *Server) *metrics {
	buckets := prometheus.ExponentialBuckets(0.0001, 2, 18) // 100 us to 13 s
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "conclave_request_seconds", Buckets: buckets,
			Help: "Time from the arrival of a request on a stream to its first reply, by operation. A place in a queue is a reply.",
		}, []string{"op"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "conclave_call_seconds", Buckets: buckets,
			Help: "Duration of single calls, by method, with the time that they spent in queues.",
		}, []string{"method"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "conclave_streams", Help: "Programs attached to this server.",
		}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "conclave_watches", Help: "Elections being observed through this server.",
		}),
		byOp: make(map[registry.Op]prometheus.Observer),
	}
	for op, name := range opNames {
		m.byOp[op] = m.requests.WithLabelValues(name)
	}
	m.registry.MustRegister(m.requests, m.calls, m.streams, m.watches, newGauges(s),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observe(op registry.Op, took time.Duration) { m.byOp[op].Observe(took.Seconds()) }

func (m *metrics) call(method string, begun time.Time) {
	m.calls.WithLabelValues(method).Observe(time.Since(begun).Seconds())
}

// gauges reads the figures of the node when somebody asks for them.
type gauges struct {
	server *Server
	all    []gauge
}

// gauge is one figure and where it comes from.
type gauge struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*snapshot) float64
}

// snapshot is what the figures are read from.
type snapshot struct {
	server *Server
	node   *node.Metrics
	counts registry.Counts
	commit uint64
	term   uint64
}

func newGauges(s *Server) *gauges {
	g := &gauges{server: s}
	g.counter("conclave_requests_total", "Requests of clients that reached the node.", func(v *snapshot) float64 { return float64(v.node.Requests.Load()) })
	g.counter("conclave_replies_total", "Replies that the node gave.", func(v *snapshot) float64 { return float64(v.node.Replies.Load()) })
	g.counter("conclave_fsyncs_total", "Writes of the log to disk; requests per write is the gain of sharing them.", func(v *snapshot) float64 { return float64(v.node.Fsyncs.Load()) })
	g.counter("conclave_snapshots_total", "Snapshots made.", func(v *snapshot) float64 { return float64(v.node.Snapshots.Load()) })
	g.counter("conclave_leader_changes_total", "How often another leader, or none, came to be known.", func(v *snapshot) float64 { return float64(v.node.LeaderChanges.Load()) })
	g.gauge("conclave_leader", "Id of the leader, or 0.", func(v *snapshot) float64 { return float64(v.node.Leader.Load()) })
	g.gauge("conclave_is_leader", "1 if this server leads.", func(v *snapshot) float64 { return truth(v.node.Leader.Load() == v.server.cfg.ID) })
	g.gauge("conclave_applied_index", "Newest log entry applied.", func(v *snapshot) float64 { return float64(v.node.Applied.Load()) })
	g.gauge("conclave_commit_index", "Newest log entry known to be committed.", func(v *snapshot) float64 { return float64(v.commit) })
	g.gauge("conclave_term", "Term of the agreement.", func(v *snapshot) float64 { return float64(v.term) })
	g.gauge("conclave_sessions", "Live sessions.", func(v *snapshot) float64 { return float64(v.counts.Sessions) })
	g.gauge("conclave_locks", "Locks that are held.", func(v *snapshot) float64 { return float64(v.counts.Locks) })
	g.gauge("conclave_elections", "Elections that somebody leads.", func(v *snapshot) float64 { return float64(v.counts.Elections) })
	g.gauge("conclave_waiters", "Requests that wait in queues.", func(v *snapshot) float64 { return float64(v.counts.Waiters) })
	g.gauge("conclave_relayed_streams", "Programs that cannot reach the leader, whose streams this server passes on to it.", func(v *snapshot) float64 { return float64(v.server.relayed.Load()) })
	g.gauge("conclave_peers_connected", "Other servers that this one has a connection to.", func(v *snapshot) float64 { return float64(len(v.server.node.Connected())) })
	return g
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (g *gauges) counter(name, help string, read func(*snapshot) float64) {
	g.all = append(g.all, gauge{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, read})
}

func (g *gauges) gauge(name, help string, read func(*snapshot) float64) {
	g.all = append(g.all, gauge{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, read})
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(descs chan<- *prometheus.Desc) {
	for _, one := range g.all {
		descs <- one.desc
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(values chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.server.ctx, scrapePatience)
	defer cancel()
	var seen, v snapshot
	err := g.server.node.View(ctx, func(r *replica.Replica) {
		state := r.Status()
		seen = snapshot{counts: r.Registry().Counts(), commit: state.Commit, term: state.Term}
	})
	// Without an answer these figures are those of an empty server, which is
	// what it is for as long as it does not know what it was.
	if err == nil {
		v = seen
	}
	v.server, v.node = g.server, g.server.node.Metrics()
	for _, one := range g.all {
		values <- prometheus.MustNewConstMetric(one.desc, one.kind, one.read(&v))
	}
}
