//go:build linux

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fetch gets a path of a server, for a client that accepts some types.
func fetch(t *testing.T, address, path, accept string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// awaitReady waits until all servers of a cluster serve calls.
func awaitReady(t *testing.T, addresses []string) {
	t.Helper()
	for _, address := range addresses {
		until(t, address+" is ready", func() bool {
			resp, err := http.Get("http://" + address + "/readyz")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// Every server serves the complete page with its policy to browsers, and the list of
// calls to other clients.
func TestEveryServerHasThePage(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	awaitReady(t, c.Addresses())
	parts := regexp.MustCompile(`(?:src|href)="\./([^"]+)"`)
	for _, address := range c.Addresses() {
		resp, page := fetch(t, address, "/", "text/html,application/xhtml+xml,*/*;q=0.8")
		if !strings.Contains(page, `id="app"`) || !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s gives a browser %.100q with %v", address, page, resp.Header)
		}
		found := parts.FindAllStringSubmatch(page, -1)
		if len(found) == 0 {
			t.Errorf("%s: the page has no parts: %.500q", address, page)
		}
		for _, part := range found {
			if resp, _ := fetch(t, address, "/"+part[1], "*/*"); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s: %s", address, part[1], resp.Status)
			}
		}
		if _, list := fetch(t, address, "/", "*/*"); !strings.Contains(list, "GET /v1/watch") {
			t.Errorf("%s gives curl %.100q", address, list)
		}
	}
}

// sample is what these tests read of the state of the servers.
type sample struct {
	Server, Leader int
	Servers        []struct {
		ID      int
		Problem string
	}
}

// The page's stream continues when the leader is killed. It names the next leader, and
// the server that does not answer.
func TestTheStreamOfThePageOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	awaitReady(t, c.Addresses())
	_, text := fetch(t, c.Addresses()[0], "/v1/members", "*/*")
	var members struct {
		Members []struct{ Leader bool }
	}
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	leader := 1 + slices.IndexFunc(members.Members, func(m struct{ Leader bool }) bool { return m.Leader })
	if leader == 0 {
		t.Fatalf("nobody leads: %s", text)
	}
	asked := leader%3 + 1

	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Addresses()[asked-1]+"/v1/watch?status=500ms&locks=", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	killed, kind := false, ""
	for lines.Scan() {
		if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
			kind = name
		}
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || kind != "status" {
			continue
		}
		var now sample
		if err := json.Unmarshal([]byte(data), &now); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if now.Server != asked || len(now.Servers) != 3 {
			t.Fatalf("server %d was asked: %s", asked, data)
		}
		if !killed && now.Leader == leader && now.Servers[leader-1].Problem == "" {
			if err := c.Kill(leader); err != nil {
				t.Fatal(err)
			}
			killed = true
		}
		if killed && now.Leader != 0 && now.Leader != leader && now.Servers[leader-1].Problem != "" {
			return
		}
	}
	t.Fatalf("the stream ended (killed %v): %v", killed, lines.Err())
}
