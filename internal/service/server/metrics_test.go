package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/replica"
)

// get returns the body of a page of a server.
func get(t *testing.T, s *Server, path string) string {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + s.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// While its loop is busy, a server returns the last known figures at once. Figures that
// fall to zero under load would look like a server that lost everything.
func TestMetricsOfABusyServer(t *testing.T) {
	s := impatient(t)
	resp, err := http.Post("http://"+s.Addr().String()+"/v1/open", "application/json", strings.NewReader(`{"ttl":"30s"}`))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	const want = "\nconclave_sessions 1\n"
	if text := get(t, s, "/metrics"); !strings.Contains(text, want) {
		t.Fatalf("one session is open, and there is no line %q", want)
	}
	entered, done := make(chan struct{}), make(chan struct{})
	go s.node.View(t.Context(), func(*replica.Replica) {
		close(entered)
		<-done
	})
	<-entered
	defer close(done)
	begun := time.Now()
	text := get(t, s, "/metrics")
	if took := time.Since(begun); took > 20*time.Second || !strings.Contains(text, want) {
		t.Errorf("a scrape of a busy server took %v; it says\n%s", took, lines(text, "conclave_sessions "))
	}
}

// lines returns the lines of a text that begin so.
func lines(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}
