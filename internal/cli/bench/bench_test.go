package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets the test binary stand in for the conclave binary when it is asked
// to measure the disk.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == DiskCommand {
		fmt.Println("0.25")
		return
	}
	goleak.VerifyTestMain(m)
}

func TestWrongConfigurationIsRefused(t *testing.T) {
	good := Config{Workload: Semaphore, Clients: 4, Connections: 2, Limit: 2, Duration: time.Second}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for words, spoil := range map[string]func(*Config){
		`"sideways"`:         func(c *Config) { c.Workload = "sideways" },
		"--clients: 0:":      func(c *Config) { c.Clients = 0 },
		"--clients: 100000:": func(c *Config) { c.Clients = 100000 },
		"--connections: 5:":  func(c *Config) { c.Connections = 5 },
		"--connections: 0:":  func(c *Config) { c.Connections = 0 },
		"--limit: 0:":        func(c *Config) { c.Limit = 0 },
		"--limit: 9999":      func(c *Config) { c.Limit = 9999999 },
		"0s":                 func(c *Config) { c.Duration = 0 },
		"48h":                func(c *Config) { c.Duration = 48 * time.Hour },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("a configuration with %s gives the error %v", words, err)
		}
	}
}

func TestSummary(t *testing.T) {
	p := newPassing(1)
	clients := []*client{
		{acquires: histogram(), handoffs: histogram(), passing: p},
		{acquires: histogram(), handoffs: histogram(), passing: p},
	}
	now := time.Now()
	for i := range 300 {
		c := clients[min(i%3, 1)] // the second gets twice as many
		c.enter(now.Add(-time.Duration(i+1)*time.Millisecond), now)
		p.given(now.Add(-time.Millisecond / 2))
		c.done++
	}
	clients[0].failed, clients[0].failure = 2, errors.New("no more")
	r := summarize(Config{Workload: Contended, Clients: 2, Connections: 1}, gather(clients, 3*time.Second))
	if r.OpsPerSecond != 100 || *r.MaxMinEntries != 2 {
		t.Errorf("%v operations per second, most/least %v; want 100 and 2", r.OpsPerSecond, *r.MaxMinEntries)
	}
	if *r.AcquireMSP50 < 149 || *r.AcquireMSP50 > 151 || *r.AcquireMSP99 < 296 || *r.AcquireMSP99 > 298 {
		t.Errorf("acquire p50 %v, p99 %v; want 150 and 297", *r.AcquireMSP50, *r.AcquireMSP99)
	}
	if *r.HandoffMSP50 < 0.49 || *r.HandoffMSP50 > 0.51 {
		t.Errorf("hand-off p50 %v; want 0.5", *r.HandoffMSP50)
	}
	if said := r.Warnings(); said != "2 of 302 operations failed; the last said: no more\n" {
		t.Errorf("the warnings are %q", said)
	}
}

// TestPassing follows a semaphore of two. The first grants answer no release, and each
// later one answers the oldest release.
func TestPassing(t *testing.T) {
	p := newPassing(2)
	zero := time.Now()
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	take := func(began, now, want int) {
		t.Helper()
		d, waited := p.taken(at(began), at(now))
		if !waited {
			d = 0
		}
		if d != time.Duration(want)*time.Millisecond {
			t.Errorf("whoever came at %d and entered at %d was handed room in %v, want %d ms", began, now, d, want)
		}
	}
	take(0, 1, 0)
	p.given(at(2)) // by the first, before the second has noticed that it is in
	take(0, 3, 0)
	p.given(at(4))
	take(1, 7, 5) // by the release at 2
	take(5, 8, 0) // came when there was room
	p.given(at(9))
	p.given(at(10))
	p.forget(at(9))
	take(1, 12, 2)
	take(1, 13, 0) // of an expired session: nobody released
}

// TestReportKeys pins the keys of the JSON object: programs read them.
func TestReportKeys(t *testing.T) {
	one := 1.5
	full := Report{
		Workload: Contended, Clients: 2, Connections: 1, OpsPerSecond: 3,
		AcquireMSP50: &one, AcquireMSP99: &one, AcquireMSP999: &one, HandoffMSP50: &one, HandoffMSP99: &one,
		MaxMinEntries: &one, FdatasyncMSP50: 4, RPCMSP50: 5, Failed: 1, Tried: 2, Remark: "a remark",
	}
	var got []string
	for _, r := range []Report{full, {}} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text)+"\n")
	}
	want, err := os.ReadFile(filepath.Join("testdata", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(got, ""); all != string(want) {
		t.Errorf("the report reads\n%s\nwant\n%s", all, want)
	}
}

func TestTextLeavesOutWhatWasNotMeasured(t *testing.T) {
	if text := new(Report).Text(); strings.Contains(text, "hand-off") || strings.Contains(text, "NaN") || strings.Contains(text, "most/least") {
		t.Errorf("an empty report reads\n%s", text)
	}
}

func TestDiskIsMeasured(t *testing.T) {
	dir := t.TempDir()
	took, err := Disk(dir, 50*time.Millisecond)
	if err != nil || took <= 0 {
		t.Fatalf("%v ms, %v", took, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Fatalf("%d files are left, %v", len(left), err)
	}
	if _, err := Disk(dir+"/nowhere", time.Millisecond); err == nil {
		t.Fatal("a directory that is not there was measured")
	}
}

func TestMedian(t *testing.T) {
	wrong := errors.New("wrong")
	if _, err := median(time.Minute, func() error { return wrong }); err != wrong {
		t.Fatal(err)
	}
	if _, err := median(0, func() error { return nil }); err != errNothing {
		t.Fatal(err)
	}
}
