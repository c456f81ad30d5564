package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
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
}

func (f *fake) List(_ context.Context, req *api.ListRequest) (*api.ListResponse, error) {
	if req.GetPrefix() == "secret/" {
		return nil, status.Error(codes.PermissionDenied, "no")
	}
	return &api.ListResponse{Resources: []*api.Resource{{Name: req.GetPrefix() + "x", Limit: 1}}, Silent: []uint64{3}}, nil
}

func (f *fake) Perform(_ context.Context, req *api.Request, wait *time.Duration) *api.Reply {
	if wait == nil {
		return &api.Reply{Code: api.Code_CODE_HELD, Message: "held", Holder: &api.Holder{Program: "p"}}
	}
	return &api.Reply{Code: api.Code_CODE_OK, Sequence: 7, Fence: 8, Floor: 8}
}

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
