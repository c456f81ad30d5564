package attack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/api"
)

// badTexts are texts that no list, log or terminal should show.
var badTexts = map[string]string{
	"escapes":   "\x1b[2J\x1b]0;owned\a",
	"newlines":  "fine\ntime=2026-11-22 level=ERROR msg=forged",
	"NUL":       "a\x00b",
	"C1":        "a\u009b2Jb",
	"bad UTF-8": "\xff\xfe\xc0\xaf",
	"64 KiB":    strings.Repeat("x", 64<<10),
}

// mark is a placeholder for a text in a message. The gRPC client itself refuses to send invalid
// UTF-8.
const mark = "\x01MARK\x01"

// forger is a codec that replaces the mark in messages.
type forger struct{ text string }

func (forger) Name() string { return "proto" }

func (f forger) Marshal(v any) ([]byte, error) {
	m := v.(proto.Message)
	raw, err := proto.Marshal(m)
	if err != nil || !bytes.Contains(raw, []byte(mark)) {
		return raw, err
	}
	return f.replaced(m, raw)
}

// replaced overwrites the mark with the text. The text is repeated or cut to the length of the
// mark, so that the encoded lengths in the message stay valid.
func (f forger) replaced(m proto.Message, raw []byte) ([]byte, error) {
	filler := (f.text + strings.Repeat(f.text, len(mark)))[:len(mark)]
	return bytes.ReplaceAll(raw, []byte(mark), []byte(filler)), nil
}

func (forger) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }

var _ encoding.Codec = forger{}

func plantBadTexts(w *world) {
	secret := newSecret()
	plain, _ := w.dial(1, nil)
	w.must(plain, secret, opening(time.Minute))
	held := w.must(plain, secret, acquiring(w.prefix+"lock"))
	id, err := plain.Sessions(w.within(), &api.SessionsRequest{})
	if err != nil {
		w.Fatal(err)
	}
	for kind, text := range badTexts {
		sent := text
		var options []grpc.DialOption
		if !utf8.ValidString(text) {
			sent, options = mark, append(options, grpc.WithDefaultCallOptions(grpc.ForceCodec(forger{text})))
		}
		client, _ := w.dial(1, nil, options...)
		open := func(o *api.Open) *api.Request { o.TtlNs = 1e9; return &api.Request{Op: &api.Request_Open{Open: o}} }
		for where, r := range map[string]*api.Request{
			"program": open(&api.Open{Program: sent}),
			"host":    open(&api.Open{Host: sent}),
			"name":    acquiring(sent),
			"reason":  {Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: w.prefix + "lock", Reason: sent}}},
		} {
			r.Session = secret
			if where == "program" || where == "host" {
				r.Session = newSecret()
			}
			reply, err := client.Do(w.within(), r)
			if err == nil && reply.GetCode() != api.Code_CODE_INVALID {
				w.Errorf("%s in the %s is answered with %v", kind, where, reply.GetCode())
			}
			w.clean("the answer to "+kind+" in the "+where, reply.GetMessage())
		}
		if _, err := client.EndSession(w.within(), &api.EndSessionRequest{Id: id.GetSessions()[0].GetId(), Reason: sent}); err == nil {
			w.Errorf("%s as the reason of an end are taken", kind)
		}
		w.header(kind, text)
	}
	w.must(plain, secret, releasing(held.GetSequence()))
	w.listsAndLogs()
}

// header sends a text over HTTP in the header for the name of the program.
func (w *world) header(kind, text string) {
	w.Helper()
	conn, err := net.Dial("tcp", w.cluster.Address(1))
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	fmt.Fprintf(conn, "POST /v1/open HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: %s\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", text)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return // the server closed the connection without an answer
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		w.Errorf("%s in a header are answered with %d", kind, resp.StatusCode)
	}
}

// clean requires that a text is short, valid UTF-8, and free of control characters.
func (w *world) clean(what, text string) {
	w.Helper()
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || len(text) > 1024 {
		w.Errorf("%s: %.200q", what, text)
	}
}

func (w *world) listsAndLogs() {
	w.Helper()
	for _, path := range []string{"/v1/sessions", "/v1/locks"} {
		var texts func(any)
		texts = func(v any) {
			switch v := v.(type) {
			case string:
				w.clean(path, v)
			case []any:
				for _, x := range v {
					texts(x)
				}
			case map[string]any:
				for _, x := range v {
					texts(x)
				}
			}
		}
		_, body := w.page(1, nil, "GET", path, "")
		var list any
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			w.Fatal(err)
		}
		texts(list)
	}
	for line := range strings.Lines(w.log.String()) {
		if !strings.HasPrefix(line, "time=") || strings.HasPrefix(line, "time=2026-11-22 level=ERROR") {
			w.Errorf("the log has the line %q", line)
		}
		w.clean("the log", strings.TrimSuffix(line, "\n"))
	}
}
