package server

import (
	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/clocks"
)

// clocksOf returns what this server knows of the clocks of others.
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
// percent, if known.
type clockJSON struct {
	Server     uint64   `json:"server"`
	Offset     spanJSON `json:"offset"`
	Error      spanJSON `json:"error"`
	Drift      *float64 `json:"drift,omitempty"`
	DriftError *float64 `json:"drift_error,omitempty"`
	Over       spanJSON `json:"over,omitempty"`
	Notable    bool     `json:"notable,omitempty"`
}

func clockToJSON(c *api.Clock) clockJSON {
	body := clockJSON{Server: c.GetServer(), Offset: spanJSON(c.GetOffsetNs()), Error: spanJSON(c.GetErrorNs()), Over: spanJSON(c.GetOverNs()), Notable: c.GetNotable()}
	if c.GetOverNs() > 0 {
		body.Drift, body.DriftError = &c.Drift, &c.DriftError
	}
	return body
}
