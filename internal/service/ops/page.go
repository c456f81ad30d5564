package ops

import (
	"fmt"
	"strings"
)

// Page returns docs/metrics.md.
func Page() []byte {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Written by "make ops" from internal/service/ops. Do not edit. -->

Every server serves these metrics at ` + "`/metrics`" + ` and at the address that ` + "`--health-listen`" + `
names. It also serves the metrics of the Go runtime
(` + "`go_*`" + `) and of the process (` + "`process_*`" + `). No label contains the name of a lock
or of its holder.

Give each cluster a separate job whose name starts with ` + "`conclave`" + `. The dashboard
[deploy/grafana.json](../deploy/grafana.json) shows one job at a time, and the rules of
[deploy/alerts.yaml](../deploy/alerts.yaml) watch each job separately. [operations.md](operations.md#alerts)
says what to do when an alert fires.

` + "```yaml" + `
scrape_configs:
  - job_name: conclave
    static_configs:
      - targets: ["10.0.0.1:7410", "10.0.0.2:7410", "10.0.0.3:7410"] # --health-listen
rule_files: [alerts.yaml]
` + "```" + `
`)
	row := ""
	for _, m := range Metrics {
		if section, _, _ := strings.Cut(m.Panel, "/"); section != row {
			row = section
			fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n", row)
		}
		help := m.Help
		if m.Absent != "" {
			help += " Absent " + m.Absent + "."
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, labels, m.Unit, help)
	}
	return []byte(b.String())
}
