package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// maxBody bounds the body of a request: in JSON, each byte of a value of 64 KiB may take six
// bytes.
const maxBody = 512 << 10

// routes returns the handler for HTTP/1.1.
func (s service) routes() http.Handler {
	mux := s.mux()
	// A foreign web page in a browser must not be able to release somebody's locks.
	// Programs send none of the headers that are checked here.
	return s.guardHost(http.NewCrossOriginProtection().Handler(s.guard(mux)))
}

// mux returns a router with all calls and what they need.
func (s service) mux() *router {
	const lock, election = api.Class_CLASS_LOCK, api.Class_CLASS_ELECTION
	mux := &router{http.NewServeMux(), make(map[string]need)}
	mux.HandleFunc("POST /v1/open", inSession, s.timed("open", s.postOpen))
	mux.HandleFunc("POST /v1/renew", inSession, s.timed("renew", with(s.postRenew)))
	mux.HandleFunc("POST /v1/close", inSession, s.timed("close", with(s.postClose)))
	mux.HandleFunc("POST /v1/acquire", inSession, s.timed("acquire", with(s.postAcquire)))
	mux.HandleFunc("POST /v1/release", inSession, s.timed("release", with(s.postRelease)))
	mux.HandleFunc("POST /v1/campaign", inSession, s.timed("campaign", with(s.postCampaign)))
	mux.HandleFunc("POST /v1/update", inSession, s.timed("update", with(s.postUpdate)))
	mux.HandleFunc("POST /v1/resign", inSession, s.timed("resign", with(s.postRelease)))
	mux.HandleFunc("POST /v1/transfer", inSession, s.timed("transfer", with(s.postTransfer)))
	mux.HandleFunc("POST /v1/revoke", need{byName, access.Revoke}, s.timed("revoke", with(s.postRevoke)))
	mux.HandleFunc("GET /v1/status", anyProven, s.timed("status", s.getStatus))
	mux.HandleFunc("GET /v1/locks", reading, s.timed("locks", s.getList(lock, "locks")))
	mux.HandleFunc("GET /v1/elections", reading, s.timed("elections", s.getList(election, "elections")))
	mux.HandleFunc("GET /v1/elections/{name}", reading, s.timed("election", s.getElection))
	mux.HandleFunc("GET /v1/elections/{name}/watch", reading, s.watchElection)
	mux.HandleFunc("GET /v1/locks/{name}/why", reading, s.timed("why", s.getWhy(lock)))
	mux.HandleFunc("GET /v1/elections/{name}/why", reading, s.timed("why", s.getWhy(election)))
	mux.HandleFunc("GET /v1/waits", reading, s.timed("waits", s.getWaits))
	mux.HandleFunc("GET /v1/watch", reading, s.watchAll) // what it tells of servers needs status
	mux.HandleFunc("GET /v1/watch/locks", reading, s.watchClass(lock))
	mux.HandleFunc("GET /v1/watch/elections", reading, s.watchClass(election))
	mux.HandleFunc("GET /v1/sessions", needs(access.Sessions), s.timed("sessions", s.getSessions))
	mux.HandleFunc("POST /v1/sessions/{id}/end", need{byName, access.EndSession}, s.timed("end_session", with(s.postEndSession)))
	s.routeServers(mux)
	mux.HandleFunc("GET /healthz", anybody, s.healthz)
	mux.HandleFunc("GET /readyz", anybody, s.readyz)
	mux.Handle("GET /metrics", needs(access.Status), s.metrics.Handler())
	mux.HandleFunc("GET /v1/{$}", anyProven, s.listCalls)
	mux.HandleFunc("GET /{$}", need{kind: proofUnlessPage}, s.frontPage)
	mux.HandleFunc("/", need{kind: proofUnlessPage}, s.elsewhere)
	return mux
}

// routeServers adds the calls about the servers themselves.
func (s service) routeServers(mux *router) {
	mux.HandleFunc("GET /v1/upgrade", needs(access.Status), s.timed("upgrade", s.getUpgrade))
	mux.HandleFunc("POST /v1/upgrade", need{byName, access.Upgrade}, s.timed("upgrade", with(s.postUpgrade)))
	mux.HandleFunc("GET /v1/view", needs(access.Status), s.timed("view", s.getView))
	mux.HandleFunc("POST /v1/view/watch", needs(access.Members), s.timed("set_watch", with(s.postWatch)))
	mux.HandleFunc("POST /v1/view/elect", needs(access.Members), s.timed("call_election", s.postElect))
	mux.HandleFunc("GET /v1/cut", needs(access.Members), s.timed("cut", s.getCut))
	mux.HandleFunc("POST /v1/guards", need{byName, access.Members}, s.timed("set_guard", with(s.postGuards)))
	mux.HandleFunc("GET /v1/members", needs(access.Status), s.timed("members", s.getMembers))
	mux.HandleFunc("POST /v1/leader", need{byName, access.Members}, s.timed("leader", with(s.postLeader)))
	mux.HandleFunc("GET /v1/access/whoami", anyProven, s.timed("whoami", s.getWhoAmI))
	mux.HandleFunc("GET /v1/audit", needs(access.Audit), s.timed("audit", s.getAudit))
	mux.HandleFunc("GET /v1/access", needs(access.AccessRead), s.timed("access", s.getAccess))
	// A change is decided, and recorded, where the log is applied.
	mux.HandleFunc("POST /v1/access", need{byName, access.Access}, s.timed("change_access", with(s.postAccess)))
	mux.HandleFunc("GET /v1/access/check", anyProven, s.timed("check", s.getCheck)) // of somebody else, access-read
}

// problem is the body of an error response.
type problem struct {
	Code    string      `json:"code"`
	Message string      `json:"message"`
	Holder  *holderJSON `json:"holder,omitempty"`
	// Cycle is the deadlock, if that is the problem: the first of CycleLength dependencies.
	Cycle       []dependencyJSON `json:"cycle,omitempty"`
	CycleLength uint32           `json:"cycle_length,omitempty"`
	// Leader is the leader's client address, if the problem is that this server does not lead.
	Leader string `json:"leader,omitempty"`
}

// timed makes a handler from a function that returns the body of its response.
func (s *Server) timed(method string, serve func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer s.metrics.Called("http_"+method, time.Now())
		control := http.NewResponseController(w)
		var body any
		err := s.receive(control, w, r)
		if err == nil {
			body, err = serve(r)
		}
		_ = control.SetWriteDeadline(time.Now().Add(s.cfg.ioTimeout)) // fails if the client is gone
		if err != nil {
			wanted, _ := r.Context().Value(needKey{}).(need)
			s.countDenial(wanted, err)
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, body)
	}
}

// receive reads the body of a request. The time limit applies only until the body has
// arrived: serving the request may take longer.
func (s *Server) receive(control *http.ResponseController, w http.ResponseWriter, r *http.Request) error {
	if err := control.SetReadDeadline(time.Now().Add(s.cfg.ioTimeout)); err != nil {
		return malformed("the connection is gone")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return malformed("the body has over %d bytes", maxBody)
	case err != nil:
		return malformed("the body did not arrive within %v", s.cfg.ioTimeout)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return control.SetReadDeadline(time.Time{})
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(body) // fails if the client is gone
}

// refused is a reply whose code is not OK.
type refused struct{ *api.Reply }

func (r refused) Error() string { return r.GetMessage() }

// malformed is an error in a request.
func malformed(format string, args ...any) error {
	return refused{&api.Reply{Code: api.Code_CODE_INVALID, Message: fmt.Sprintf(format, args...)}}
}

func writeError(w http.ResponseWriter, err error) {
	reply, is := errors.AsType[refused](err)
	if !is {
		reply = refused{&api.Reply{Code: api.CodeOf(err), Message: api.Reason(err)}}
	}
	meaning := api.MeaningOf(reply.GetCode())
	body := problem{Code: meaning.Name, Message: reply.GetMessage(), Leader: reply.GetLeader()}
	if reply.GetHolder() != nil {
		body.Holder = holderToJSON(reply.GetHolder())
	}
	body.CycleLength, body.Cycle = reply.GetCycleLength(), listed(reply.GetCycle(), dependencyToJSON)
	writeJSON(w, meaning.HTTP, body)
}

// with returns a function that reads the body of a request, and passes it to serve.
func with[B any](serve func(r *http.Request, body *B) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		body := new(B)
		if err := readJSON(r, body); err != nil {
			return nil, err
		}
		return serve(r, body)
	}
}

// readJSON reads the body of a request, and refuses what the decoder would ignore or change: a
// request with a misspelt "wait" would wait forever.
func readJSON(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body) // receive has bounded it
	if err == nil {
		err = checkText(body)
	}
	if err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	err = in.Decode(into)
	if err == nil {
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the JSON object")
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return malformed("the body is empty: send an object in JSON")
	}
	var wrong refused
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return wrong
	case errors.As(err, &mistyped):
		what := "the body"
		if mistyped.Field != "" {
			what = strconv.Quote(mistyped.Field)
		}
		if mistyped.Type == reflect.TypeFor[spanJSON]() {
			return malformed("%s: must not be a JSON %s; write a duration with its unit, for example \"30s\"", what, mistyped.Value)
		}
		return malformed("%s: must not be a JSON %s; see docs/http.md", what, mistyped.Value)
	}
	return malformed("the body is not what was expected: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// perform carries out a request and returns an error for every reply but OK. A wait bounds
// the whole call; without one the default deadline does, unless the request may wait in a
// queue.
func (s *Server) perform(ctx context.Context, req *api.Request, wait *time.Duration) (*api.Reply, error) {
	if wait != nil {
		// The reserve is added, so that the request really waits that long.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(*wait, math.MaxInt64-reserve)+min(*wait, reserve))
		defer cancel()
	}
	reply := s.do(ctx, req)
	if reply.GetCode() != api.Code_CODE_OK {
		return nil, refused{reply}
	}
	return reply, nil
}

// secret is the secret of a session, as 32 hexadecimal digits: only its owner sends it, and
// only its owner gets it back.
type secret []byte

func (s *secret) UnmarshalText(text []byte) error {
	if strings.HasPrefix(string(text), stream.PublicPrefix) {
		return malformed("%s", stream.PublicID(string(text), "what /v1/open returned as session"))
	}
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != stream.SecretSize {
		return malformed("session: not a secret; give the 32 hexadecimal digits that /v1/open returned as session")
	}
	*s = raw
	return nil
}

func (s secret) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s), nil }

// sessionID is the public id of a session, as people see it.
type sessionID []byte

func (id sessionID) MarshalText() ([]byte, error) {
	return hex.AppendEncode([]byte(stream.PublicPrefix), id), nil
}

// bigNumber is a number of 64 bits. It is written as a string, since many JSON readers have
// only 53 bits for a number, and read from a string or a number.
type bigNumber uint64

func (n bigNumber) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(n), 10), nil }

func (n *bigNumber) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number from 0 up", text)
	}
	*n = bigNumber(number)
	return nil
}

// span is a duration such as "10s".
type spanJSON time.Duration

func (d spanJSON) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *spanJSON) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf("%.40q: not a duration; write for example \"10s\" or \"500ms\"", text)
	}
	*d = spanJSON(parsed)
	return nil
}

func newSecret() secret {
	s := make(secret, stream.SecretSize)
	rand.Read(s) // never fails: crypto/rand ends the program instead
	return s
}

// checkText reports what the JSON decoder would change without an error: text that is not UTF-8,
// which it replaces, so that two names would be one, and a field that is given twice, of which it
// takes the last.
func checkText(body []byte) error {
	if !utf8.Valid(body) {
		return malformed("the body is not valid UTF-8")
	}
	if escape := loneSurrogate(string(body)); escape != "" {
		return malformed(`%s: half of a pair of surrogates, which is no text`, escape)
	}
	if key := repeatedField(body); key != "" {
		return malformed("%.40q: this field is given twice", key)
	}
	return nil
}

// loneSurrogate returns an escape that is half of a pair of surrogates, or "".
func loneSurrogate(body string) string {
	const size = len(`\uD800`)
	unit := func(at int) rune {
		if at+size > len(body) || body[at:at+2] != `\u` {
			return -1
		}
		n, err := strconv.ParseUint(body[at+2:at+size], 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for at := 0; at < len(body)-1; at++ {
		if body[at] != '\\' {
			continue
		}
		first := unit(at)
		switch {
		case !utf16.IsSurrogate(first):
			at++ // the next byte may be a backslash
		case utf16.DecodeRune(first, unit(at+size)) == utf8.RuneError:
			return body[at : at+size]
		default:
			at += 2*size - 1
		}
	}
	return ""
}

// repeatedField returns a field that an object of a body has twice, or "". The decoder does not
// distinguish upper and lower case. It reports other mistakes itself.
func repeatedField(body []byte) string {
	type level struct {
		fields map[string]bool // nil in a list
		value  bool            // the next token is a value
	}
	var levels []level
	in := json.NewDecoder(strings.NewReader(string(body)))
	in.UseNumber()
	for {
		token, err := in.Token()
		if err != nil {
			return ""
		}
		if delimiter, is := token.(json.Delim); is && (delimiter == '}' || delimiter == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].fields != nil {
			top := &levels[n-1]
			if !top.value {
				key := fmt.Sprint(token)
				if top.fields[strings.ToLower(key)] {
					return key
				}
				top.fields[strings.ToLower(key)], top.value = true, true
				continue
			}
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{fields: make(map[string]bool)})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}
