package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/conclave-io/conclave/internal/kit/histogram"
	"github.com/conclave-io/conclave/internal/service/clocks"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/ops"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// scraped are the metrics whose values are read at each scrape.
type scraped struct {
	of     Source
	counts *Metrics
	all    []scrapedMetric
}

type scrapedMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read probe
	time timeProbe // instead of read
}

// probe passes each value of a metric, with the values of its labels, to emit.
type probe func(v *snapshot, emit func(value float64, labels ...string))

// timeProbe passes the durations of a histogram, with the values of its labels, to emit.
type timeProbe func(v *snapshot, emit func(d *histogram.Durations, labels ...string))

// snapshot is the data that probes read.
type snapshot struct {
	of     Source
	counts *Metrics
	node   *node.Metrics
	times  node.Times
	home   host.Status
	clocks []clocks.Estimate
	others []transport.PeerState
	disk   *room // nil if it is not known
	replica.Stats
}

func newScraped(of Source, counts *Metrics) *scraped {
	c := &scraped{of: of, counts: counts}
	for _, m := range ops.Metrics {
		read, time := readings[m.Name], timeReadings[m.Name]
		if read == nil && time == nil {
			continue // counted by metrics
		}
		kind := prometheus.GaugeValue
		if m.Type == ops.Counter {
			kind = prometheus.CounterValue
		}
		c.all = append(c.all, scrapedMetric{prometheus.NewDesc(m.Name, m.Help, m.Labels, nil), kind, read, time})
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *scraped) Describe(descs chan<- *prometheus.Desc) {
	for _, one := range c.all {
		descs <- one.desc
	}
}

// Collect implements prometheus.Collector. It does not wait: the figures of the replica are
// from after its newest output, even if the replica has been busy since.
func (c *scraped) Collect(values chan<- prometheus.Metric) {
	n := c.of.Node
	v := snapshot{
		of: c.of, counts: c.counts, node: n.Metrics(), times: n.Metrics().Times(), Stats: n.Metrics().Stats(), home: n.Home().Status(),
		clocks: n.Clocks(), others: n.PeerStates(), disk: c.counts.usage.of(c.of.Dir),
	}
	for _, one := range c.all {
		if one.time != nil {
			one.time(&v, func(d *histogram.Durations, labels ...string) {
				all, atMost := d.Buckets()
				values <- prometheus.MustNewConstHistogram(one.desc, all, seconds(d.Sum), atMost, labels...)
			})
			continue
		}
		one.read(&v, func(value float64, labels ...string) {
			values <- prometheus.MustNewConstMetric(one.desc, one.kind, value, labels...)
		})
	}
}
