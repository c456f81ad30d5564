package server

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/conclave-io/conclave/service/host"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

// scrapePatience is how long the question whether a server is ready waits for the
// node, which may be busy.
const scrapePatience = 2 * time.Second

// metrics are the figures of a server beyond those of its node.
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
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "conclave_certificate_reloads_total",
			Help: "How often the TLS files were read again, by result: ok, or failed, when the certificates before stay in use.",
		}, []string{"result"}),
		byOp: make(map[registry.Op]prometheus.Observer),
	}
	for _, result := range []string{"ok", "failed"} {
		m.reloads.WithLabelValues(result) // from 0 on
	}
	for op, name := range opNames {
		m.byOp[op] = m.requests.WithLabelValues(name)
	}
	m.registry.MustRegister(m.requests, m.calls, m.reloads, newGauges(s), newClockGauges(s),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observe(op registry.Op, took time.Duration) {
	m.byOp[op].Observe(took.Seconds())
	m.latencies.note(took)
}

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
	each func(*snapshot, func(label string, value float64)) // in place of read, if there is a label
}

// snapshot is what the figures are read from.
type snapshot struct {
	server *Server
	node   *node.Metrics
	live   host.Status
	replica.Stats
}

func newGauges(s *Server) *gauges {
	g := &gauges{server: s}
	g.counter("conclave_requests_total", "Requests of clients that reached the node.", func(v *snapshot) float64 { return float64(v.node.Requests.Load()) })
	g.counter("conclave_replies_total", "Replies that the node gave.", func(v *snapshot) float64 { return float64(v.node.Replies.Load()) })
	g.counter("conclave_exhausted_total", "Replies EXHAUSTED: a bounded queue was full.", func(v *snapshot) float64 { return float64(v.node.Exhausted.Load()) })
	g.counter("conclave_fsyncs_total", "Writes of the log to disk; requests per write is the gain of sharing them.", func(v *snapshot) float64 { return float64(v.node.Fsyncs.Load()) })
	g.counter("conclave_snapshots_total", "Snapshots made.", func(v *snapshot) float64 { return float64(v.node.Snapshots.Load()) })
	g.counter("conclave_leader_changes_total", "How often another leader, or none, came to be known.", func(v *snapshot) float64 { return float64(v.node.LeaderChanges.Load()) })
	g.gauge("conclave_leader", "Id of the leader, or 0.", func(v *snapshot) float64 { return float64(v.node.Leader.Load()) })
	g.gauge("conclave_is_leader", "1 if this server leads.", func(v *snapshot) float64 { return truth(v.node.Leader.Load() == v.server.cfg.ID) })
	g.gauge("conclave_applied_index", "Newest log entry applied.", func(v *snapshot) float64 { return float64(v.node.Applied.Load()) })
	g.gauge("conclave_commit_index", "Newest log entry known to be committed.", func(v *snapshot) float64 { return float64(v.Commit) })
	g.gauge("conclave_term", "Term of the agreement.", func(v *snapshot) float64 { return float64(v.Term) })
	g.gauge("conclave_disk_stalled_seconds", "Duration of the write to the data directory that does not end, or 0.", func(v *snapshot) float64 { return stalled(v, true) })
	g.gauge("conclave_apply_stalled_seconds", "Time for which log entries have waited to be applied although the disk of this server works, or 0.", func(v *snapshot) float64 { return stalled(v, false) })
	g.gauge("conclave_sessions", "Live sessions.", func(v *snapshot) float64 { return float64(v.Sessions) })
	g.gauge("conclave_locks", "Locks that are held.", func(v *snapshot) float64 { return float64(v.Locks) })
	g.gauge("conclave_elections", "Elections that somebody leads.", func(v *snapshot) float64 { return float64(v.Elections) })
	g.gauge("conclave_waiters", "Requests that wait in queues.", func(v *snapshot) float64 { return float64(v.Waiters) })
	g.gauge("conclave_pending_requests", "Requests that wait to get into the log; above 0 only where the leader is.", func(v *snapshot) float64 { return float64(v.Pending) })
	g.gauge("conclave_state_bytes", "Size of the replicated state, estimated.", func(v *snapshot) float64 { return float64(v.StateBytes) })
	g.gauge("conclave_state_limit_bytes", "Setting state-limit: where this server, as the leader, takes nothing that makes the state larger.", func(v *snapshot) float64 { return float64(v.StateLimit) })
	g.gauge("conclave_streams", "Programs attached to this server.", func(v *snapshot) float64 { return float64(v.server.metrics.attached.Load()) })
	g.gauge("conclave_watches", "Elections and prefixes that are watched through this server.", func(v *snapshot) float64 { return float64(v.server.metrics.watching.Load()) })
	g.gauge("conclave_relayed_streams", "Programs that cannot reach the leader, whose streams this server passes on to it.", func(v *snapshot) float64 { return float64(v.server.relayed.Load()) })
	g.gauge("conclave_view_epoch", "Epoch that this server is in as a guard of locks by algorithms, or has seen.", func(v *snapshot) float64 { return float64(v.live.View.Epoch) })
	g.gauge("conclave_view_members", "Servers that guard locks by algorithms, as this one knows them.", func(v *snapshot) float64 { return float64(len(v.live.View.Members)) })
	g.gauge("conclave_seat_remaining_seconds", "What is left of the lease of this server's seat, or 0.", func(v *snapshot) float64 { return time.Duration(v.live.Remaining).Seconds() })
	g.gauge("conclave_home_sessions", "Sessions that this server keeps for locks that algorithms guard.", func(v *snapshot) float64 { return float64(v.live.Sessions) })
	g.gauge("conclave_view_pause_seconds", "How long the locks that algorithms guard paused at the last change of the epoch, as this server saw it.", func(v *snapshot) float64 { return time.Duration(v.live.Paused).Seconds() })
	g.watch()
	g.labelled()
	g.counter("conclave_live_wait_seconds_total", "How long all of these grants together took, from when the algorithm was asked.", func(v *snapshot) float64 { return time.Duration(v.live.All.Waited).Seconds() })
	g.counter("conclave_live_entries_total", "Grants of locks that algorithms guard, to clients of this server.", func(v *snapshot) float64 { return float64(v.live.Entries) })
	g.gauge("conclave_peers_connected", "Other servers that this one has a connection to.", func(v *snapshot) float64 { return float64(len(v.server.node.Connected())) })
	return g
}

// watch adds what this server's failure detector and election said.
func (g *gauges) watch() {
	g.gauge("conclave_watch_doubted", "Members of the view that the failure detector of this server suspects, or has declared failed.", func(v *snapshot) float64 { return float64(len(v.live.Watch.Doubted)) })
	g.counter("conclave_watch_suspicions_total", "How often the failure detector of this server suspected a member of the view.", func(v *snapshot) float64 { return float64(v.live.Watch.Suspicions) })
	g.counter("conclave_watch_failures_total", "How often it declared one failed.", func(v *snapshot) float64 { return float64(v.live.Watch.Failures) })
	g.counter("conclave_watch_trusts_total", "How often it took a suspicion or a failure back.", func(v *snapshot) float64 { return float64(v.live.Watch.Trusts) })
	g.counter("conclave_watch_elections_total", "Results of elections in the view that this server has heard.", func(v *snapshot) float64 { return float64(v.live.Watch.Elections) })
	g.counter("conclave_watch_messages_total", "Messages of detector and election that this server sent to others.", func(v *snapshot) float64 { return float64(v.live.Watch.Messages) })
}

// labelled adds the figures that have a label each.
func (g *gauges) labelled() {
	add := func(name, label, help string, kind prometheus.ValueType, each func(*snapshot, func(string, float64))) {
		g.all = append(g.all, gauge{desc: prometheus.NewDesc(name, help, []string{label}, nil), kind: kind, each: each})
	}
	add("conclave_view_changes_total", "reason", "Epochs that began at this server, by what changed; one with two reasons counts twice.", prometheus.CounterValue, func(v *snapshot, emit func(string, float64)) {
		for i, reason := range host.Reasons {
			emit(reason, float64(v.live.StartsFor[i]))
		}
	})
	add("conclave_live_messages_total", "class", "Messages that this server sent to others for locks that algorithms guard: those that the costs of an algorithm count, others of it, those of the watch stack, and those of the view.", prometheus.CounterValue, func(v *snapshot, emit func(string, float64)) {
		l := &v.live
		emit("protocol", float64(l.All.Messages))
		emit("other", float64(l.All.Others))
		emit("watch", float64(l.Watch.Messages))
		emit("view", float64(l.Messages-l.All.Messages-l.All.Others-l.Watch.Messages))
	})
	add("conclave_live_names", "state", "Locks that an algorithm guards and that have a machine at this server: busy if its clients hold or wait for them.", prometheus.GaugeValue, func(v *snapshot, emit func(string, float64)) {
		emit("busy", float64(v.live.Busy))
		emit("idle", float64(v.live.Names-v.live.Busy))
	})
	add("conclave_link_unacked", "peer", "Messages for another server that it has not acknowledged.", prometheus.GaugeValue, func(v *snapshot, emit func(string, float64)) {
		for _, l := range v.live.Links {
			emit(strconv.FormatUint(l.Server, 10), float64(l.Unacked))
		}
	})
	add("conclave_shunned_total", "why", "How often this server, as the leader, chose a seat to be renewed no more.", prometheus.CounterValue, func(v *snapshot, emit func(string, float64)) {
		for i, why := range replica.Whys {
			emit(why, float64(v.Shunned[i]))
		}
	})
}

// stalled is how long something has not ended that has to do with the disk, or not.
func stalled(v *snapshot, disk bool) float64 {
	if stall := v.server.node.Stall(); stall.Disk == disk {
		return stall.Took.Seconds()
	}
	return 0
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (g *gauges) counter(name, help string, read func(*snapshot) float64) {
	g.all = append(g.all, gauge{desc: prometheus.NewDesc(name, help, nil, nil), kind: prometheus.CounterValue, read: read})
}

func (g *gauges) gauge(name, help string, read func(*snapshot) float64) {
	g.all = append(g.all, gauge{desc: prometheus.NewDesc(name, help, nil, nil), kind: prometheus.GaugeValue, read: read})
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(descs chan<- *prometheus.Desc) {
	for _, one := range g.all {
		descs <- one.desc
	}
}

// Collect implements prometheus.Collector. It waits for nobody: the figures of the
// replica are those after its newest output, however busy the node is since.
func (g *gauges) Collect(values chan<- prometheus.Metric) {
	figures := g.server.node.Metrics()
	v := snapshot{server: g.server, node: figures, Stats: figures.Stats(), live: g.server.node.Live()}
	for _, one := range g.all {
		if one.each == nil {
			values <- prometheus.MustNewConstMetric(one.desc, one.kind, one.read(&v))
			continue
		}
		one.each(&v, func(label string, value float64) {
			values <- prometheus.MustNewConstMetric(one.desc, one.kind, value, label)
		})
	}
}

// opNames are the operations as figures name them.
var opNames = map[registry.Op]string{
	registry.OpOpen: "open", registry.OpRenew: "renew", registry.OpClose: "close",
	registry.OpAcquire: "acquire", registry.OpRelease: "release",
	registry.OpCancel: "cancel", registry.OpUpdate: "update",
	registry.OpRevoke: "revoke", registry.OpTransfer: "transfer",
}
