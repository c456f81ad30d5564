package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
)

// fake is a server that answers a few calls.
type fake struct {
	Server
	refused []error
	// before is called before a request is answered.
	before    func(context.Context)
	takenBack chan uint64
}

func (f *fake) List(_ context.Context, req *api.ListRequest) (*api.ListResponse, error) {
	if req.GetPrefix() == "secret/" {
		return nil, status.Error(codes.PermissionDenied, "no")
	}
	return &api.ListResponse{Resources: []*api.Resource{{Name: req.GetPrefix() + "x", Limit: 1}}, Silent: []uint64{3}}, nil
}

func (f *fake) Perform(ctx context.Context, req *api.Request, wait *time.Duration) *api.Reply {
	if f.before != nil {
		f.before(ctx)
	}
	if wait == nil {
		return &api.Reply{Code: api.Code_CODE_HELD, Message: "held", Holder: &api.Holder{Program: "p"}}
	}
	return &api.Reply{Code: api.Code_CODE_OK, Sequence: 7, Fence: 8, Floor: 8}
}

func (f *fake) TakeBack(_ context.Context, req *api.Request) { f.takenBack <- req.GetSequence() }

func (f *fake) Called(string, time.Time)             {}
func (f *fake) Refused(_ context.Context, err error) { f.refused = append(f.refused, err) }
func (f *fake) Follow(_ context.Context, election string, send func(*api.Observation) error) error {
	return send(&api.Observation{Name: election})
}

func (f *fake) Go(task func()) { go task() }

func TestHandler(t *testing.T) {
	f := new(fake)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page\n")) })
	nothing := http.NotFoundHandler()
	h := New(f, Config{ID: 1, Version: "v", IOTimeout: time.Minute, Page: page, Healthz: nothing, Readyz: nothing, Metrics: nothing})
	served := httptest.NewServer(h)
	defer served.Close()
	const session = "00112233445566778899aabbccddeeff"
	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/locks?prefix=a/", "", 200, `{"locks":[{"name":"a/x","limit":1,"holders":[],"waiters":[],"queue_length":0}],"more":false,"silent":[3]}`},
		{"GET", "/v1/locks?prefix=secret/", "", 403, `{"code":"DENIED","message":"no"}`},
		{"GET", "/v1/locks?limit=x", "", 400, `{"code":"INVALID","message":"limit: \"x\" is not a number"}`},
		{"POST", "/v1/acquire", `{"session":"` + session + `","name":"a","wait":"1s"}`, 200, `{"session":"` + session + `","name":"a","hold":"7","fence":"8","floor":"8"}`},
		{"POST", "/v1/acquire", `{"session":"` + session + `","name":"a","wait":"0s"}`, 423, `{"code":"HELD","message":"held","holder":{"session_id":"s-","hold":"0","fence":"0","since":"1970-01-01T00:00:00Z","host":"","pid":0,"program":"p"}}`},
		{"GET", "/v1/elections/a%2Fb", "", 200, `{"name":"a/b","elected":false}`},
		{"GET", "/v1/nothing", "", 404, `{"code":"INVALID","message":"there is no GET /v1/nothing here: GET /v1/ lists what there is"}`},
		{"GET", "/app.js", "", 200, "page"},
	} {
		req, err := http.NewRequest(test.method, served.URL+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := served.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		if err := resp.Write(&body); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != test.status || !strings.Contains(body.String(), test.want+"\n") {
			t.Errorf("%s %s: %s, want %d %s", test.method, test.path, body.String(), test.status, test.want)
		}
	}
	if len(f.refused) != 3 {
		t.Errorf("the server has noted the refusals %v", f.refused)
	}
}

const oneSecond = `{"session":"00112233445566778899aabbccddeeff","name":"a","wait":"1s"}`

// A hold is taken back if its caller has closed the connection before the answer is written, also if
// no goroutine has noticed that yet.
func TestAGrantToNobodyIsTakenBack(t *testing.T) {
	for _, secure := range []bool{false, true} {
		f := &fake{takenBack: make(chan uint64, 1)}
		served := httptest.NewUnstartedServer(New(f, Config{IOTimeout: time.Minute, Healthz: http.NotFoundHandler(), Readyz: http.NotFoundHandler(), Metrics: http.NotFoundHandler()}))
		served.Config.ConnContext = WithConn
		start := served.Start
		if secure {
			start = served.StartTLS
		}
		start()
		client, left := served.Client(), make(chan bool)
		f.before = func(ctx context.Context) {
			client.Transport.(*http.Transport).CloseIdleConnections()
			close(left)
			for !gone(ctx) {
				runtime.Gosched()
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			<-left
			leave()
		}()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, served.URL+"/v1/acquire", strings.NewReader(oneSecond))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(req); err == nil {
			t.Errorf("the caller has left, and gets %s", resp.Status)
			resp.Body.Close()
		}
		if hold := <-f.takenBack; hold != 7 {
			t.Errorf("the hold %d is taken back, want 7", hold)
		}
		served.Close()
	}
}

// brokenWriter is a connection that takes no answer.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) SetReadDeadline(time.Time) error  { return nil }
func (brokenWriter) SetWriteDeadline(time.Time) error { return nil }
func (brokenWriter) FlushError() error                { return syscall.ECONNRESET }

func TestAGrantThatCannotBeSentIsTakenBack(t *testing.T) {
	f := &fake{takenBack: make(chan uint64, 1)}
	h := New(f, Config{IOTimeout: time.Minute, Healthz: http.NotFoundHandler(), Readyz: http.NotFoundHandler(), Metrics: http.NotFoundHandler()})
	for path, taken := range map[string]int{"/v1/acquire": 1, "/v1/campaign": 1, "/v1/renew": 0} {
		body := oneSecond
		if path == "/v1/renew" {
			body = `{"session":"00112233445566778899aabbccddeeff"}`
		}
		h.ServeHTTP(brokenWriter{httptest.NewRecorder()}, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		if n := len(f.takenBack); n != taken {
			t.Errorf("%s: %d holds are taken back, want %d", path, n, taken)
		}
		for range len(f.takenBack) {
			<-f.takenBack
		}
	}
}

func TestFind(t *testing.T) {
	h := New(new(fake), Config{Healthz: http.NotFoundHandler(), Readyz: http.NotFoundHandler(), Metrics: http.NotFoundHandler()})
	for _, test := range []struct {
		method, path, pattern string
		need                  access.Need
	}{
		{"GET", "/v1/locks", "GET /v1/locks", access.Reading},
		{"POST", "/v1/sessions/x/end", "POST /v1/sessions/{id}/end", access.ByName(access.EndSession)},
		{"GET", "/healthz", "GET /healthz", access.Anybody},
		{"GET", "/none", "/", access.Need{Kind: access.NeedProofUnlessPage}},
	} {
		pattern, need := h.Find(httptest.NewRequest(test.method, test.path, nil))
		if pattern != test.pattern || need != test.need {
			t.Errorf("%s %s is %q and needs %v", test.method, test.path, pattern, need)
		}
	}
}
