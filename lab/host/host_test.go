package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/conclave-io/conclave/lab/engine"
	"github.com/conclave-io/conclave/lab/host"
)

// A server waits half a second after a request that was too long.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// served is a host that serves.
type served struct {
	t     *testing.T
	base  string
	token string
}

func serve(t *testing.T) *served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the page") })
	h, err := host.New(listener, host.Options{Page: page, Build: "test", Cores: 2, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- h.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	at, err := url.Parse(h.URL("1/gallery"))
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(at.Fragment, "1/gallery?engine=")
	return &served{t: t, base: "http://" + at.Host, token: token}
}

// do sends a request with the token, changed by the caller.
func (s *served) do(ctx context.Context, method, path, body string, change func(r *http.Request)) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() }) // the test is over
	return resp
}

// frame is a frame on the wire.
type frame struct {
	head map[string]any
	body []byte
}

// read reads one frame, or returns false at the end.
func read(t *testing.T, from io.Reader) (frame, bool) {
	t.Helper()
	var lengths [8]byte
	if _, err := io.ReadFull(from, lengths[:]); err != nil {
		return frame{}, false
	}
	head := make([]byte, binary.LittleEndian.Uint32(lengths[:]))
	f := frame{body: make([]byte, binary.LittleEndian.Uint32(lengths[4:]))}
	for _, part := range [][]byte{head, f.body} {
		if _, err := io.ReadFull(from, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(head, &f.head); err != nil {
		t.Fatal(err)
	}
	return f, true
}

func (s *served) call(worker, request string) []frame {
	s.t.Helper()
	resp := s.do(context.Background(), "POST", "/lab/call?worker="+worker, request, nil)
	if resp.StatusCode != 200 {
		s.t.Fatalf("%s: %s", request, resp.Status)
	}
	var all []frame
	for {
		f, more := read(s.t, resp.Body)
		if !more {
			return all
		}
		all = append(all, f)
	}
}

const run = `{"id":7,"call":"open","text":"algorithm: lamport\nn: 3\nworkload: {commands: [{at: 0, acquire: 1}]}\n"}`

func TestAnswersOverHTTP(t *testing.T) {
	s := serve(t)
	all := s.call("a", run)
	if len(all) != 3 || all[0].head["type"] != engine.TypeRun || all[1].head["type"] != engine.TypeChunk || all[2].head["type"] != engine.TypeResult {
		t.Fatalf("open is answered by %v", all)
	}
	if count, _ := all[1].head["count"].(float64); count < 5 || len(all[1].body) < 36*int(count) || all[2].head["id"] != 7.0 {
		t.Errorf("the chunk has %v records and %d bytes, the result is %v", all[1].head["count"], len(all[1].body), all[2].head)
	}
	described := s.call("a", `{"id":7,"call":"describe","run":1,"from":1,"to":2}`)
	if len(described) != 1 || described[0].head["type"] != engine.TypeResult {
		t.Errorf("describe is answered by %v", described)
	}
	if other := s.call("b", `{"id":1,"call":"describe","run":1,"from":1,"to":2}`); other[0].head["code"] != engine.CodeRun {
		t.Errorf("another worker has the run, too: %v", other)
	}
}

// A page cancels by the number that it chose, and a reader that goes away cancels, too.
func TestCancel(t *testing.T) {
	s := serve(t)
	long := `{"id":3,"call":"open","records":1000000,"text":"algorithm: ricart-agrawala\nn: 10\nworkload: {regime: saturated}\nlimit: {events: 100000000}\n"}`
	resp := s.do(context.Background(), "POST", "/lab/call?worker=a", long, nil)
	if f, _ := read(t, resp.Body); f.head["type"] != engine.TypeRun {
		t.Fatalf("the first frame is %v", f.head)
	}
	s.call("a", `{"id":4,"call":"cancel","request":3}`)
	last := frame{}
	for more := true; more; {
		var f frame
		if f, more = read(t, resp.Body); more {
			last = f
		}
	}
	if last.head["code"] != engine.CodeCancelled {
		t.Errorf("what was cancelled ends with %v", last.head)
	}
	ctx, leave := context.WithCancel(context.Background())
	resp = s.do(ctx, "POST", "/lab/call?worker=a", long, nil)
	f, _ := read(t, resp.Body)
	leave()
	// The run is closed when the engine comes to know that nobody reads.
	more := fmt.Sprintf(`{"id":5,"call":"hash","run":%v,"at":0}`, f.head["run"])
	for s.call("a", more)[0].head["type"] != engine.TypeError {
	}
}

func TestWorkersEnd(t *testing.T) {
	s := serve(t)
	s.call("a", run)
	if resp := s.do(context.Background(), "DELETE", "/lab/call?worker=a", "", nil); resp.StatusCode != http.StatusNoContent {
		t.Errorf("to end a worker gives %s", resp.Status)
	}
	if all := s.call("a", `{"id":1,"call":"hash","run":1,"at":0}`); all[0].head["code"] != engine.CodeRun {
		t.Errorf("the run outlived its worker: %v", all)
	}
	for i := range 15 {
		s.call(fmt.Sprintf("w%d", i), `{"id":1,"call":"hello"}`)
	}
	if resp := s.do(context.Background(), "POST", "/lab/call?worker=one-more", `{"id":1,"call":"hello"}`, nil); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a worker too many gives %s", resp.Status)
	}
}

// Nobody reaches the engine but the page whose URL holds the token.
func TestOthersAreRefused(t *testing.T) {
	s := serve(t)
	const call, hello = "/lab/call?worker=a", `{"id":1,"call":"hello"}`
	for _, c := range []struct {
		name, method, path, body string
		change                   func(r *http.Request)
		status                   int
	}{
		{"no token", "POST", call, hello, func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"another token", "POST", call, hello, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
		{"another page", "POST", call, hello, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"a page without an origin", "POST", call, hello, func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"the same page by https", "POST", call, hello, func(r *http.Request) { r.Header.Set("Origin", "https://"+r.Host) }, 403},
		{"a name that was bound anew", "GET", "/lab/", "", func(r *http.Request) { r.Host = "evil.example:80" }, 403},
		{"no worker", "POST", "/lab/call", hello, nil, 400},
		{"a request that is no JSON", "POST", call, "{", nil, 400},
		{"a request that is too long", "POST", call, `{"text":"` + strings.Repeat("x", engine.MostRequestSize) + `"}`, nil, 400},
		{"another method", "GET", call, "", nil, 405},
		{"the page itself", "POST", call, hello, func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) }, 200},
		{"the page", "GET", "/lab/", "", nil, 200},
	} {
		resp := s.do(context.Background(), c.method, c.path, c.body, c.change)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s, it must be %d", c.name, resp.Status, c.status)
		}
		if policy := resp.Header.Values("Content-Security-Policy"); len(policy) == 0 || policy[0] != "frame-ancestors 'none'" {
			t.Errorf("%s: it may be framed: %v", c.name, policy)
		}
	}
}

func TestOnlyLoopback(t *testing.T) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if _, err := host.New(listener, host.Options{}); err == nil || !bytes.Contains([]byte(err.Error()), []byte("loopback")) {
		t.Errorf("a host on all addresses: %v", err)
	}
}
