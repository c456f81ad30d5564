package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/internal/test/longrun"
)

// section is the result of a measurement, as text for people and as data for programs.
type section struct {
	markdown string
	data     any
}

// header describes the machine, the versions and the time of a measurement.
type header struct {
	Command string `json:"command"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Machine string `json:"machine"`
	// Load is the load average when the measurement began. It shows whether other programs were
	// running.
	Load string `json:"load"`
}

func about(command string) header {
	return header{
		Command: command, Commit: longrun.Commit(".."), Date: time.Now().UTC().Format(time.DateOnly),
		Machine: fmt.Sprintf("%d cores of %s, Linux %s, %s", runtime.NumCPU(), processor(), output("uname", "-r"), runtime.Version()),
		Load:    loadAverage(),
	}
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	lastMinute, _, _ := strings.Cut(string(text), " ")
	return lastMinute
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// keep prints a section, writes it into the page and stores its data.
func (s section) keep(name string, head header, page, results string) error {
	text := fmt.Sprintf("%s\n\n`%s`, %s, at %s, on %s; the load average was %s when it began.\n",
		strings.TrimSpace(s.markdown), head.Command, head.Date, head.Commit, head.Machine, head.Load)
	fmt.Println(text)
	if page != "" {
		if _, err := splice.File(page, name, "\n"+strings.TrimSpace(text)+"\n\n", true); err != nil {
			return err
		}
	}
	if results == "" {
		return nil
	}
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	figures, err := json.MarshalIndent(map[string]any{"about": head, "figures": s.data}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(results, name+".json"), append(figures, '\n'), 0o644)
}

// table returns a Markdown table. Its first column contains text, the others contain numbers.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	rule := []string{"---"}
	for range head[1:] {
		rule = append(rule, "---:")
	}
	line(rule)
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// spread is the median, minimum and maximum of several measurements.
type spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// spreadOf returns nil for no values.
func spreadOf(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	return &spread{middle, sorted[0], sorted[len(sorted)-1]}
}

func (s *spread) String() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s to %s)", digits(s.Median), digits(s.Least), digits(s.Most))
}

// quartiles returns the median and the interquartile range of ratios near 1.
func quartiles(values []float64) string {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", spreadOf(values).Median, sorted[n/4], sorted[n-1-n/4])
}

// digits rounds a figure to three significant digits.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
