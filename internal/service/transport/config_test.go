package transport

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"
)

func noTLS() *tls.Config { return &tls.Config{} }

func TestBadConfigurations(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"handler: missing":  func(c *Config) { c.Handler = nil },
		"listener: missing": func(c *Config) { c.Listener = nil },
		"server id 0 is reserved: use a number from 1 up":       func(c *Config) { c.Self.Server = 0 },
		"levels: 3 to 2: must be an ascending range":            func(c *Config) { c.MinLevel, c.MaxLevel = 3, 2 },
		"has 65 bytes: at most 64 are allowed":                  func(c *Config) { c.Build = strings.Repeat("b", 65) },
		"peers: must not contain this server, 1":                func(c *Config) { c.Peers[1] = "127.0.0.1:1" },
		"TLS is set for one direction only":                     func(c *Config) { c.ClientTLS = noTLS },
		"it must be RequireAndVerifyClientCert":                 func(c *Config) { c.ClientTLS, c.ServerTLS = noTLS, &tls.Config{} },
		"QueueMessages is -1: it must be 1 or more":             func(c *Config) { c.QueueMessages = -1 },
		"MaxFrame is 5: it must be from 2097152 to 1073741824":  func(c *Config) { c.MaxFrame = 5 },
		"PingInterval is 1ns: it must be 1 ms or more":          func(c *Config) { c.PingInterval = 1 },
		"must be at least three times PingInterval (200ms)":     func(c *Config) { c.IdleTimeout = 300 * time.Millisecond },
		"must be at least twice IdleTimeout (1s)":               func(c *Config) { c.HandshakeTimeout = time.Second },
		"WriteTimeout -1ns, DialTimeout 1s and RefusedPause 5s": func(c *Config) { c.WriteTimeout = -1 },
		"goes from 1s to 500ms: it must grow":                   func(c *Config) { c.BackoffMin = time.Second },
	} {
		l := listen(t, "127.0.0.1:0")
		cfg := config(1, l, map[uint64]string{2: "127.0.0.1:1"})
		cfg.Handler = &recorder{}
		change(&cfg)
		tr, err := New(cfg)
		if err == nil {
			tr.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "transport: ") {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		if err := l.Close(); err != nil {
			t.Errorf("the listener was closed by a New that failed: %v", err)
		}
	}
}
