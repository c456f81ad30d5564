package ops_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/ops"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// tool returns the path of a program that only make ops-check requires.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("OPS_REQUIRED") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// carryOut runs a program, which succeeds.
func carryOut(t *testing.T, name string, args ...string) string {
	t.Helper()
	said, err := exec.Command(tool(t, name), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, said)
	}
	return string(said)
}

// TestAlertsFire: each alert fires for its fault, and is silent without it.
func TestAlertsFire(t *testing.T) {
	carryOut(t, "promtool", "check", "rules", filepath.Join(root, "deploy/alerts.yaml"))
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	args := []string{"test", "rules"}
	for _, a := range ops.Alerts {
		args = append(args, write(a.Name+"-test.yaml", a.RuleTest(write(a.Name+".yaml", ops.Rules(a)))))
	}
	carryOut(t, "promtool", args...)
	// A test that expects the opposite fails: promtool has looked.
	const fires, silent = "exp_samples: [{labels: '{}', value: 1}]", "exp_samples: []"
	first := ops.Alerts[0]
	test := string(first.RuleTest(filepath.Join(dir, first.Name+".yaml")))
	for old, other := range map[string]string{fires: silent, silent: fires} {
		wrong := write("wrong.yaml", []byte(strings.Replace(test, old, other, 1)))
		if err := exec.Command("promtool", "test", "rules", wrong).Run(); err == nil {
			t.Errorf("promtool takes %q for %q", other, old)
		}
	}
}

// TestEveryExpressionHasAnAnswer lets a real Prometheus scrape a real cluster, and
// evaluates all expressions of the dashboard and the alerts.
func TestEveryExpressionHasAnAnswer(t *testing.T) {
	tool(t, "prometheus")
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 3, authority.Secure, func(cfg *config.Server) { cfg.HealthListen = "127.0.0.1:0" })
	var servers, targets []string
	for id := 1; id <= 3; id++ {
		servers = append(servers, c.Address(id))
		targets = append(targets, c.Server(id).HealthAddr().String())
	}
	client, err := conclave.Dial(t.Context(), conclave.Config{Servers: servers, TLS: authority.Client("program")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p := startPrometheus(t, targets)
	// Rates need two scrapes with something between them.
	for scrapes := 0; scrapes < 3; scrapes++ {
		until := p.scrapes(t) + 3
		for p.scrapes(t) < until {
			use(t, client)
		}
	}
	for _, m := range ops.Metrics {
		for _, q := range m.Queries() {
			expr := strings.NewReplacer("$job", "conclave", "$__rate_interval", "10s").Replace(q.Expr)
			found, err := p.query(expr)
			if err != nil {
				t.Errorf("%s: %v", expr, err)
			} else if found == 0 && m.Absent == "" {
				t.Errorf("%s: no series", expr)
			}
		}
	}
	for _, a := range ops.Alerts {
		if _, err := p.query(a.Expr); err != nil {
			t.Errorf("alert %s: %v", a.Name, err)
		}
	}
	for name, health := range p.rules(t) {
		if health != "ok" {
			t.Errorf("alert %s: Prometheus says it is %s", name, health)
		}
	}
	if n := len(p.rules(t)); n != len(ops.Alerts) {
		t.Errorf("Prometheus has %d alerts, want %d", n, len(ops.Alerts))
	}
}

// use takes a lock that somebody waits for.
func use(t *testing.T, client *conclave.Client) {
	t.Helper()
	first, err := client.Lock(t.Context(), "used")
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		second, err := client.Lock(t.Context(), "used")
		if err == nil {
			err = second.Unlock(t.Context())
		}
		waited <- err
	}()
	servertest.Eventually(t, "somebody waits", func() bool {
		s, err := admin.New(client).Status(t.Context())
		return err == nil && s.Waiters > 0
	})
	if err := first.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
}

// prometheus is a server of it.
type prometheus struct{ address string }

func startPrometheus(t *testing.T, targets []string) prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(root, "deploy/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - job_name: conclave\n    static_configs: [{targets: [\"%s\"]}]\n",
		rules, strings.Join(targets, `", "`))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := prometheus{l.Addr().String()}
	l.Close()
	cmd := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	servertest.Eventually(t, "Prometheus has scraped all servers", func() bool {
		n, err := p.query("up == 1")
		return err == nil && n == len(targets)
	})
	return p
}

// ask asks for a path and returns the data of the answer.
func (p prometheus) ask(path string, into any) error {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + p.address + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return nil
}

// query returns how many series an expression has now.
func (p prometheus) query(expr string) (int, error) {
	var data struct{ Result []json.RawMessage }
	err := p.ask("/api/v1/query?query="+url.QueryEscape(expr), &data)
	return len(data.Result), err
}

// scrapes returns how many times the first server was scraped, about.
func (p prometheus) scrapes(t *testing.T) int {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.ask("/api/v1/query?query="+url.QueryEscape("min(count_over_time(up[10m]))"), &data); err != nil {
		t.Fatal(err)
	}
	if len(data.Result) == 0 {
		return 0
	}
	n := 0
	if _, err := fmt.Sscan(fmt.Sprint(data.Result[0].Value[1]), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// rules returns the health of each alert.
func (p prometheus) rules(t *testing.T) map[string]string {
	t.Helper()
	health := make(map[string]string)
	servertest.Eventually(t, "Prometheus has evaluated all rules", func() bool {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health string }
			}
		}
		if err := p.ask("/api/v1/rules", &data); err != nil {
			t.Fatal(err)
		}
		known := len(data.Groups) > 0
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				health[r.Name] = r.Health
				known = known && r.Health != "unknown"
			}
		}
		return known
	})
	return health
}

// TestAlertsUseTheList: an alert uses only metrics that exist, and operations.md says
// what to do.
func TestAlertsUseTheList(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, a := range ops.Alerts {
		if seen[a.Name] {
			t.Errorf("%s: listed twice", a.Name)
		}
		seen[a.Name] = true
		if !bytes.Contains(page, []byte("\n### "+a.Name+"\n")) {
			t.Errorf("docs/operations.md has no section ### %s", a.Name)
		}
		for _, name := range regexp.MustCompile(`conclave_[a-z_]+`).FindAllString(a.Expr, -1) {
			_, histogram := ops.Find(strings.TrimSuffix(name, "_bucket"))
			if _, found := ops.Find(name); !found && !histogram {
				t.Errorf("%s: %s is not in ops.Metrics", a.Name, name)
			}
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^### ([A-Z]\w+)$`).FindAllStringSubmatch(string(page), -1) {
		if !seen[section[1]] {
			t.Errorf("docs/operations.md speaks of %s, which is not in ops.Alerts", section[1])
		}
	}
}

// TestUnits: systemd takes the units, and finds that they expose little of the machine.
func TestUnits(t *testing.T) {
	for name, wants := range map[string][]string{
		"conclave.service":       {"Type=notify\n", "WatchdogSec=30\n", "RestartPreventExitStatus=78\n", "ExecReload=/bin/kill -HUP $MAINPID\n", "StateDirectoryMode=0700\n"},
		"conclave-hold@.service": {"Type=notify\n", "TimeoutStartSec=infinity\n", "SuccessExitStatus=143\n", "RuntimeDirectory=conclave-hold/%i\n"},
	} {
		t.Run(name, func(t *testing.T) { checkUnit(t, name, wants) })
	}
}

func checkUnit(t *testing.T, name string, wants []string) {
	unit, err := os.ReadFile(filepath.Join(root, "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wants {
		if !bytes.Contains(unit, []byte("\n"+want)) {
			t.Errorf("the unit lacks %q", want)
		}
	}
	// The program need not be installed where the unit has it.
	path := filepath.Join(t.TempDir(), name)
	unit = bytes.ReplaceAll(unit, []byte("/usr/bin/conclave "), []byte("/bin/true "))
	if err := os.WriteFile(path, unit, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := carryOut(t, "systemd-analyze", "verify", "--man=no", path); said != "" {
		t.Errorf("systemd-analyze verify: %s", said)
	}
	carryOut(t, "systemd-analyze", "security", "--offline=true", "--threshold=20", path)
}
