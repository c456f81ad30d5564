package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/conclave-io/conclave/internal/ops"
	"github.com/conclave-io/conclave/service/clocks"
	"github.com/conclave-io/conclave/service/host"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/replica"
)

// scraped are the metrics of the list that are read when somebody asks for them.
type scraped struct {
	server *Server
	all    []scrapedMetric
}

type scrapedMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read probe
}

// probe passes on the values of a metric, each with those of its labels.
type probe func(v *snapshot, emit func(value float64, labels ...string))

// snapshot is what is read.
type snapshot struct {
	server *Server
	node   *node.Metrics
	live   host.Status
	clocks []clocks.Estimate
	replica.Stats
}

func newScraped(s *Server) *scraped {
	c := &scraped{server: s}
	for _, m := range ops.Metrics {
		read, ok := readings[m.Name]
		if !ok {
			continue
		}
		kind := prometheus.GaugeValue
		if m.Type == ops.Counter {
			kind = prometheus.CounterValue
		}
		c.all = append(c.all, scrapedMetric{prometheus.NewDesc(m.Name, m.Help, m.Labels, nil), kind, read})
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *scraped) Describe(descs chan<- *prometheus.Desc) {
	for _, one := range c.all {
		descs <- one.desc
	}
}

// Collect implements prometheus.Collector. It waits for nobody: the figures of the
// replica are those after its newest output, however busy the node is since.
func (c *scraped) Collect(values chan<- prometheus.Metric) {
	n := c.server.node
	v := snapshot{server: c.server, node: n.Metrics(), Stats: n.Metrics().Stats(), live: n.Live(), clocks: n.Clocks()}
	for _, one := range c.all {
		one.read(&v, func(value float64, labels ...string) {
			values <- prometheus.MustNewConstMetric(one.desc, one.kind, value, labels...)
		})
	}
}
