package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
)

func get(t *testing.T, h http.Handler, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, from io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Everything that the pages refer to is there, with its type, and nothing of it comes
// from elsewhere.
func TestThePagesAreComplete(t *testing.T) {
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	refers := regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	for _, page := range []string{"/", "/lab/"} {
		resp := get(t, h, page)
		text := body(t, resp.Body)
		if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			t.Fatalf("%s: %d %s", page, resp.StatusCode, resp.Header.Get("Content-Type"))
		}
		found := refers.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s refers to nothing", page)
		}
		for _, one := range found {
			target, err := httptest.NewRequest("GET", page, nil).URL.Parse(one[1])
			if err != nil || target.Host != "" && target.Host != "example.com" {
				t.Errorf("%s refers to %s", page, one[1])
				continue
			}
			if part := get(t, h, target.Path); part.StatusCode != 200 {
				t.Errorf("%s refers to %s: %d", page, one[1], part.StatusCode)
			}
		}
	}
}

func TestContentIsCompressedAndRevalidated(t *testing.T) {
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	const script = "/assets/main.js"
	plain := get(t, h, script)
	packed := get(t, h, script, "Accept-Encoding", "br, gzip;q=0.8")
	refused := get(t, h, script, "Accept-Encoding", "gzip;q=0")
	if packed.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("Content-Encoding") != "" || refused.Header.Get("Content-Encoding") != "" {
		t.Fatalf("encodings: %q %q %q", packed.Header.Get("Content-Encoding"), plain.Header.Get("Content-Encoding"), refused.Header.Get("Content-Encoding"))
	}
	short := body(t, packed.Body)
	unpacked, err := gzip.NewReader(bytes.NewReader([]byte(short)))
	if err != nil {
		t.Fatal(err)
	}
	if text := body(t, plain.Body); text != body(t, unpacked) || len(short) >= len(text) {
		t.Errorf("%d bytes are %d compressed, or others", len(text), len(short))
	}
	for _, resp := range []*http.Response{plain, packed} {
		etag := resp.Header.Get("ETag")
		headers := []string{"If-None-Match", etag, "Accept-Encoding", resp.Header.Get("Content-Encoding")}
		if again := get(t, h, script, headers...); again.StatusCode != http.StatusNotModified || etag == "" {
			t.Errorf("asked again with %s: %d", etag, again.StatusCode)
		}
	}
	if plain.Header.Get("ETag") == packed.Header.Get("ETag") {
		t.Error("two encodings have one ETag")
	}
}

// Only the lab may be framed, nothing may load from elsewhere, and what is not there is
// said to be so.
func TestHeaders(t *testing.T) {
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	for path, frames := range map[string]string{"/": "'none'", "/lab/": "*", "/assets/main.js": "'none'", "/none": "'none'"} {
		resp := get(t, h, path)
		policy := resp.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "frame-ancestors "+frames+";") || !strings.HasPrefix(policy, "default-src 'none';") ||
			strings.Contains(policy, "unsafe-inline") || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, resp.Header)
		}
		if want := path == "/none"; want != (resp.StatusCode == 404) {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if resp := get(t, h, "/lab"); resp.StatusCode != http.StatusMovedPermanently || resp.Header.Get("Location") != "lab/" {
		t.Errorf("/lab: %d %s", resp.StatusCode, resp.Header.Get("Location"))
	}
}

// The script and style of both faces together have 120 kB at most when they are packed by
// Brotli. What only exported files need is not counted.
func TestThePageIsSmall(t *testing.T) {
	const most = 120_000
	entries, err := files.ReadDir("dist/assets")
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	var all bytes.Buffer
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "replay.") {
			continue
		}
		content, err := files.ReadFile("dist/assets/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		w := brotli.NewWriterLevel(&all, brotli.BestCompression)
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if all.Len() > most {
		t.Errorf("the page has %d bytes, packed by Brotli: at most %d are allowed", all.Len(), most)
	}
	t.Logf("%d bytes", all.Len())
}

// Each of the 34 flows has a test, and the tests that docs/lab/flows.md names exist.
func TestEveryFlowIsPlayed(t *testing.T) {
	doc, err := os.ReadFile("../docs/lab/flows.md")
	if err != nil {
		t.Fatal(err)
	}
	played := map[string]bool{}
	rows := regexp.MustCompile("(?m)^(?:\\| (\\d+) \\| .* \\| |- .*\\*\\* )(?:`(\\S+\\.ts)`: (.+?)|the same)(?: \\|)?$")
	for _, row := range rows.FindAllStringSubmatch(string(doc), -1) {
		number, file, name := row[1], row[2], row[3]
		played[number] = true
		if file == "" {
			continue
		}
		flows, err := os.ReadFile("ui/tests/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(flows), "\""+name+"\",") {
			t.Errorf("docs/lab/flows.md: flow %s: %s has no test %q", number, file, name)
		}
	}
	for flow := 1; flow <= 34; flow++ {
		if !played[strconv.Itoa(flow)] {
			t.Errorf("docs/lab/flows.md: flow %d has no test", flow)
		}
	}
}
