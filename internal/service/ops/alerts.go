package ops

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Alert is a Prometheus rule that reports a fault. docs/operations.md has a section with its name that
// says what to do.
type Alert struct {
	Name     string
	Expr     string
	For      time.Duration // how long the condition must hold
	Severity string        // page: needs action now; warning: needs action on the next day
	Summary  string
	// Fault has series with which the alert must fire, and Calm series with which it must not. At
	// is the time of the check, from the start of the series.
	Fault, Calm []Series
	At          time.Duration
}

// Series is one of the inputs of a test, in the notation of promtool: a sample each minute.
type Series struct{ Metric, Values string }

// The severities.
const (
	page    = "page"
	warning = "warning"
)

// Alerts has all alerts, in the order of deploy/alerts.yaml.
var Alerts = slices.Concat(availability, slowness, capacity, safety, upkeep)

// is is a series of one server of a cluster.
func is(metric, instance, values string, labels ...string) Series {
	labels = append([]string{`job="conclave"`, fmt.Sprintf("instance=%q", instance)}, labels...)
	return Series{metric + "{" + strings.Join(labels, ",") + "}", values}
}

// all are the series of three servers.
func all(metric string, values ...string) (series []Series) {
	for i, v := range values {
		series = append(series, is(metric, string(rune('a'+i)), v))
	}
	return series
}

// observed are the buckets of a histogram whose count grows by n each minute. Each
// duration is between two bounds.
func observed(metric, above, upTo string, n int, labels ...string) []Series {
	bucket := func(le string, n int) Series {
		return is(metric+"_bucket", "a", fmt.Sprintf("0+%dx120", n), append(labels, fmt.Sprintf("le=%q", le))...)
	}
	return []Series{bucket(above, 0), bucket(upTo, n), bucket("+Inf", n)}
}

// Rules returns the rules of alerts: deploy/alerts.yaml has all.
func Rules(alerts ...Alert) []byte {
	var b strings.Builder
	b.WriteString("# Written by \"make ops\" from internal/service/ops. Do not edit.\n# docs/operations.md says what each alert means and what to do.\ngroups:\n  - name: conclave\n    rules:\n")
	for _, a := range alerts {
		fmt.Fprintf(&b, "      - alert: %s\n        expr: %q\n", a.Name, a.Expr)
		if a.For > 0 {
			fmt.Fprintf(&b, "        for: %s\n", short(a.For))
		}
		fmt.Fprintf(&b, "        labels:\n          severity: %s\n        annotations:\n          summary: %q\n          runbook: %q\n",
			a.Severity, a.Summary, "docs/operations.md#"+strings.ToLower(a.Name))
	}
	return []byte(b.String())
}

// RuleTest returns what "promtool test rules" reads: the alert fires for its fault, and is
// silent without it. The file rules has the rule.
func (a Alert) RuleTest(rules string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 1m\ntests:\n", rules)
	for _, played := range []struct {
		series []Series
		want   string
	}{{a.Fault, "[{labels: '{}', value: 1}]"}, {a.Calm, "[]"}} {
		fmt.Fprintf(&b, "  - interval: 1m\n    input_series:\n")
		for _, s := range played.series {
			fmt.Fprintf(&b, "      - {series: '%s', values: '%s'}\n", s.Metric, s.Values)
		}
		fmt.Fprintf(&b, "    promql_expr_test:\n      - expr: 'count(count by (alertname) (ALERTS{alertname=\"%s\",alertstate=\"firing\"}))'\n        eval_time: %s\n        exp_samples: %s\n",
			a.Name, short(a.At), played.want)
	}
	return []byte(b.String())
}

// short writes a duration as Prometheus reads it.
func short(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
