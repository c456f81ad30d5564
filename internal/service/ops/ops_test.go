package ops_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/ops"
)

const root = "../../.."

// TestFilesAreCurrent: the files say what the lists say.
func TestFilesAreCurrent(t *testing.T) {
	for name, want := range ops.Files() {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what internal/service/ops describes: run make ops", name)
		}
	}
}

// TestMetricsAreWellFormed checks what Prometheus and its conventions ask for.
func TestMetricsAreWellFormed(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range ops.Metrics {
		if seen[m.Name] {
			t.Errorf("%s: listed twice", m.Name)
		}
		seen[m.Name] = true
		if !regexp.MustCompile(`^conclave_[a-z0-9_]+$`).MatchString(m.Name) {
			t.Errorf("%s: expected conclave_ and lower case letters", m.Name)
		}
		if total := strings.HasSuffix(m.Name, "_total"); total != (m.Type == ops.Counter) {
			t.Errorf("%s: type %s: a counter, and nothing else, ends in _total", m.Name, m.Type)
		}
		if m.Type != ops.Counter && m.Type != ops.Gauge && m.Type != ops.Histogram {
			t.Errorf("%s: type %q: unknown", m.Name, m.Type)
		}
		for unit, suffix := range map[ops.Unit]string{ops.Seconds: "_seconds", ops.Timestamp: "_timestamp_seconds", ops.Bytes: "_bytes", ops.Ratio: "_ratio"} {
			if base := strings.TrimSuffix(m.Name, "_total"); m.Unit == unit && !strings.HasSuffix(base, suffix) {
				t.Errorf("%s: unit %s: expected a name with %s", m.Name, unit, suffix)
			}
		}
		if m.Unit == "" || !strings.HasSuffix(m.Help, ".") || strings.ContainsAny(m.Help, "|\n") {
			t.Errorf("%s: unit %q, help %q: expected a unit, and sentences without | and newlines", m.Name, m.Unit, m.Help)
		}
		if row, title, _ := strings.Cut(m.Panel, "/"); row == "" || title == "" {
			t.Errorf("%s: panel %q: expected Row/Title", m.Name, m.Panel)
		}
	}
}

// TestEveryMetricIsDrawn: the dashboard leaves none out.
func TestEveryMetricIsDrawn(t *testing.T) {
	dashboard := string(ops.Dashboard())
	for _, m := range ops.Metrics {
		drawn := false
		for _, q := range m.Queries() {
			drawn = drawn || strings.Contains(q.Expr, m.Name)
		}
		if !drawn || !strings.Contains(dashboard, m.Name) {
			t.Errorf("%s: no panel draws it", m.Name)
		}
	}
}

// TestMustRefusesOthers: a metric that is registered is in the list.
func TestMustRefusesOthers(t *testing.T) {
	defer func() {
		if got := recover(); got != `ops: metric "conclave_other": not in Metrics` {
			t.Errorf("Must says %v", got)
		}
	}()
	ops.Must("conclave_other")
}
