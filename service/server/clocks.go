package server

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/clocks"
)

// clocksOf is what this server knows of the clocks of others.
func clocksOf(all []clocks.Estimate) (list []*api.Clock) {
	for i := range all {
		e := &all[i]
		list = append(list, &api.Clock{
			Server: e.Server, OffsetNs: e.Offset, ErrorNs: e.Error, Drift: e.Drift, DriftError: e.DriftError, OverNs: e.Over, Notable: e.Notable(),
		})
	}
	return list
}

// clockJSON is the clock of another server. Drift is how much faster it runs, 0.01 for one
// in a hundred, if that is known.
type clockJSON struct {
	Server     uint64   `json:"server"`
	Offset     spanJSON `json:"offset"`
	Error      spanJSON `json:"error"`
	Drift      *float64 `json:"drift,omitempty"`
	DriftError *float64 `json:"drift_error,omitempty"`
	Over       spanJSON `json:"over,omitempty"`
	Notable    bool     `json:"notable,omitempty"`
}

func clocksToJSON(all []*api.Clock) []clockJSON {
	list := []clockJSON{}
	for _, c := range all {
		one := clockJSON{Server: c.GetServer(), Offset: spanJSON(c.GetOffsetNs()), Error: spanJSON(c.GetErrorNs()), Over: spanJSON(c.GetOverNs()), Notable: c.GetNotable()}
		if c.GetOverNs() > 0 {
			one.Drift, one.DriftError = &c.Drift, &c.DriftError
		}
		list = append(list, one)
	}
	return list
}

// clockGauges are the figures of the clocks of other servers.
type clockGauges struct {
	server                           *Server
	offset, wrong, drift, driftWrong *prometheus.Desc
}

func newClockGauges(s *Server) *clockGauges {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"peer"}, nil) }
	return &clockGauges{
		server:     s,
		offset:     desc("conclave_clock_offset_seconds", "How far the wall clock of another server is ahead of that of this server."),
		wrong:      desc("conclave_clock_error_seconds", "By how much the offset is wrong at most."),
		drift:      desc("conclave_clock_drift_ratio", "How much faster the clock of another server runs, by which leases are measured: leases allow less than 0.1."),
		driftWrong: desc("conclave_clock_drift_error_ratio", "By how much the drift is wrong at most."),
	}
}

// Describe implements prometheus.Collector.
func (g *clockGauges) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.offset, g.wrong, g.drift, g.driftWrong} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (g *clockGauges) Collect(values chan<- prometheus.Metric) {
	all := g.server.node.Clocks()
	for i := range all {
		e := &all[i]
		say := func(d *prometheus.Desc, v float64) {
			values <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, strconv.FormatUint(e.Server, 10))
		}
		say(g.offset, time.Duration(e.Offset).Seconds())
		say(g.wrong, time.Duration(e.Error).Seconds())
		if e.Over > 0 {
			say(g.drift, e.Drift)
			say(g.driftWrong, e.DriftError)
		}
	}
}
