// Package ops has the lists of what operators see: the metrics of a server, the panels of the dashboard
// that show them, and the alerts on them. The server registers its metrics from these lists, and "make
// ops" generates docs/metrics.md and the files in deploy from them.
package ops

import (
	"fmt"
	"slices"
)

// A Type is the type of a metric, in the words of Prometheus.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// A Unit is what the value of a metric, or an observation of a histogram, counts.
type Unit string

// The units.
const (
	Seconds   Unit = "seconds"
	Timestamp Unit = "seconds since 1970"
	Bytes     Unit = "bytes"
	Ratio     Unit = "ratio"
	One       Unit = "1 or 0"
	Count     Unit = "count"
	Number    Unit = "number" // an id, an index or a term
)

// A Metric is one that servers serve at /metrics.
type Metric struct {
	Name   string
	Type   Type
	Labels []string
	Unit   Unit
	Help   string // one sentence or two
	// Absent says when a server has no series of the metric; "" means never.
	Absent string
	// Panel is "Row/Title" of the panel of the dashboard that draws the metric.
	Panel string
	// Expr is what the panel draws; "" means what suits the type: see Exprs.
	Expr string
}

// Find returns the metric with a name.
func Find(name string) (Metric, bool) {
	i := slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return Metrics[i], true
}

// Must returns the metric with a name, which is in the list.
func Must(name string) Metric {
	m, found := Find(name)
	if !found {
		panic(fmt.Sprintf("ops: metric %q: not in Metrics", name))
	}
	return m
}

// Files are those that are written from the lists, by their path in the repository.
func Files() map[string][]byte {
	return map[string][]byte{
		"docs/metrics.md":     Page(),
		"deploy/grafana.json": Dashboard(),
		"deploy/alerts.yaml":  Rules(Alerts...),
	}
}
