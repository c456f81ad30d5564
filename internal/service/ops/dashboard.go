package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The grid of the dashboard: three panels stand side by side.
const (
	panelWidth   = 8
	panelHeight  = 7
	panelsInARow = 3
)

// selector picks the series of the cluster that the dashboard shows.
const selector = `{job="$job"}`

func rateOf(name, function string) string {
	return fmt.Sprintf("%s(%s%s[$__rate_interval])", function, name, selector)
}

// A Query is an expression that a panel draws, and how it names the series.
type Query struct{ Expr, Legend string }

// Queries are what the panel of a metric draws.
func (m Metric) Queries() []Query {
	labels := append([]string{"instance"}, m.Labels...)
	legend := "{{" + strings.Join(labels, "}} {{") + "}}"
	switch {
	case m.Expr != "":
		return []Query{{m.Expr, legend}}
	case m.Type == Counter:
		return []Query{{fmt.Sprintf("sum by (%s) (%s)", strings.Join(labels, ", "), rateOf(m.Name, "rate")), legend}}
	case m.Type == Gauge:
		return []Query{{m.Name + selector, legend}}
	}
	of := strings.TrimPrefix(legend, "{{instance}}")
	quantile := func(q, name string) Query {
		by := strings.Join(append([]string{"le"}, m.Labels...), ", ")
		return Query{fmt.Sprintf("histogram_quantile(%s, sum by (%s) (%s))", q, by, rateOf(m.Name+"_bucket", "rate")), name + of}
	}
	return []Query{quantile("0.5", "median"), quantile("0.99", "p99")}
}

// panel is one of the dashboard, with the metrics that it draws.
type panel struct {
	row, title string
	metrics    []Metric
}

// panels are those of all metrics, in their order.
func panels() (all []*panel) {
	find := func(row, title string) *panel {
		for _, p := range all {
			if p.row == row && p.title == title {
				return p
			}
		}
		all = append(all, &panel{row: row, title: title})
		return all[len(all)-1]
	}
	for _, m := range Metrics {
		row, title, _ := strings.Cut(m.Panel, "/")
		p := find(row, title)
		p.metrics = append(p.metrics, m)
	}
	return all
}

// Dashboard returns deploy/grafana.json.
func Dashboard() []byte {
	var drawn []map[string]any
	row, x, y := "", 0, 0
	for i, p := range panels() {
		if p.row != row {
			if x > 0 {
				y += panelHeight
			}
			drawn = append(drawn, map[string]any{
				"type": "row", "title": p.row, "id": 1000 + i, "collapsed": false, "panels": []any{},
				"gridPos": map[string]int{"h": 1, "w": panelsInARow * panelWidth, "x": 0, "y": y},
			})
			row, x, y = p.row, 0, y+1
		}
		drawn = append(drawn, p.json(i+1, x*panelWidth, y))
		if x++; x == panelsInARow {
			x, y = 0, y+panelHeight
		}
	}
	return indented(map[string]any{
		"title": "Conclave", "uid": "conclave", "tags": []string{"conclave"}, "editable": true, "schemaVersion": 39,
		"refresh": "30s", "time": map[string]string{"from": "now-1h", "to": "now"}, "timezone": "utc",
		"templating": map[string]any{"list": []any{
			map[string]any{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
			map[string]any{
				"name": "job", "type": "query", "label": "Cluster (job)", "datasource": source, "refresh": 1,
				"query": "label_values(conclave_leader, job)", "definition": "label_values(conclave_leader, job)",
			},
		}},
		"panels": drawn,
	})
}

var source = map[string]string{"type": "prometheus", "uid": "${datasource}"}

func (p *panel) json(id, x, y int) map[string]any {
	var targets []map[string]any
	var said []string
	unit := drawnAs(p.metrics[0])
	for _, m := range p.metrics {
		said = append(said, m.Name+": "+m.Help)
		if drawnAs(m) != unit {
			unit = "short"
		}
		for _, q := range m.Queries() {
			if len(p.metrics) > 1 {
				q.Legend = strings.TrimPrefix(m.Name, "conclave_") + " " + q.Legend
			}
			targets = append(targets, map[string]any{"datasource": source, "expr": q.Expr, "legendFormat": q.Legend, "refId": string(rune('A' + len(targets)))})
		}
	}
	return map[string]any{
		"type": "timeseries", "title": p.title, "id": id, "datasource": source, "description": strings.Join(said, "\n\n"),
		"gridPos":     map[string]int{"h": panelHeight, "w": panelWidth, "x": x, "y": y},
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": unit}, "overrides": []any{}},
		"targets":     targets,
	}
}

// drawnAs is the unit of a panel, in the words of Grafana.
func drawnAs(m Metric) string {
	switch {
	case m.Unit == Timestamp:
		return "s"
	case m.Type == Counter && m.Unit == Seconds:
		return "s"
	case m.Type == Counter && m.Unit == Bytes:
		return "Bps"
	case m.Type == Counter:
		return "cps"
	}
	return map[Unit]string{Seconds: "s", Bytes: "bytes", Ratio: "percentunit", One: "bool"}[m.Unit]
}

func indented(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic("ops: dashboard: " + err.Error()) // it has nothing but strings and numbers
	}
	return b.Bytes()
}
