package bench

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongConfigurationIsRefused(t *testing.T) {
	good := Config{Workload: Contended, Clients: 4, Connections: 2, Duration: time.Second}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for words, spoil := range map[string]func(*Config){
		`"sideways"`:    func(c *Config) { c.Workload = "sideways" },
		"0 clients":     func(c *Config) { c.Clients = 0 },
		"5 connections": func(c *Config) { c.Connections = 5 },
		"0 connections": func(c *Config) { c.Connections = 0 },
		"0s":            func(c *Config) { c.Duration = 0 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("a configuration with %s gives the error %v", words, err)
		}
	}
}

func TestSummary(t *testing.T) {
	released := new(int64)
	clients := []*client{
		{acquires: histogram(), handoffs: histogram(), released: released},
		{acquires: histogram(), handoffs: histogram(), released: released},
	}
	now := time.Now()
	for i := range 300 {
		c := clients[min(i%3, 1)] // the second gets twice as many
		c.note(time.Duration(i+1)*time.Millisecond, now)
		*released = now.UnixNano() - int64(2*time.Millisecond)
	}
	r := summarize(Config{Workload: Contended, Clients: 2, Connections: 1}, clients, 3*time.Second)
	if r.OpsPerSecond != 100 || r.MaxMinEntries != 2 {
		t.Errorf("%v operations per second, most/least %v; want 100 and 2", r.OpsPerSecond, r.MaxMinEntries)
	}
	if r.AcquireMSP50 < 149 || r.AcquireMSP50 > 151 || r.AcquireMSP99 < 296 || r.AcquireMSP99 > 298 {
		t.Errorf("acquire p50 %v, p99 %v; want 150 and 297", r.AcquireMSP50, r.AcquireMSP99)
	}
	if r.HandoffMSP50 < 1.99 || r.HandoffMSP50 > 2.01 {
		t.Errorf("hand-off p50 %v; want 2", r.HandoffMSP50)
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
