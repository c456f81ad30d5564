// Package web has the page: the lab and the dashboard, as they were built by make web.
// Handler serves the files. It imports no laboratory and no server: who runs a server
// gives the handler to it.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed dist engine
var files embed.FS

// kinds are the types of the files by what their names end with. The system's own table
// is not asked: it differs from machine to machine.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
	".txt":  "text/plain; charset=utf-8",
	".wasm": "application/wasm",
}

// policy is what a browser lets the page do: run its own scripts and WebAssembly, and
// reach the server that it came from.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; " +
	"connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors %s; " +
	"require-trusted-types-for 'script'; trusted-types conclave svelte-trusted-html"

// file is one file of the page.
type file struct {
	kind   string
	etag   string
	raw    []byte
	packed func() []byte // raw packed by gzip, at the first call, or nil if that gains nothing
	engine []byte        // packed by Brotli in place of raw and packed, or nil
}

// handler serves the files by their paths.
type handler map[string]*file

// Handler returns what serves the page: the app at /, and the lab alone at /lab/, which
// others may frame. It fails only if the files it was built with are not there.
func Handler() (http.Handler, error) {
	h := make(handler)
	err := h.fill()
	if err == nil && h["/"] == nil {
		err = fmt.Errorf("web: dist/index.html: not built; run make web")
	}
	return h, err
}

// fill adds all embedded files.
func (h handler) fill() error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "engine/README.md" {
			return err
		}
		return h.add(name)
	})
}

// add adds an embedded file.
func (h handler) add(name string) error {
	content, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	f := &file{etag: hex.EncodeToString(sum[:12])}
	at := strings.TrimSuffix(strings.TrimPrefix("/"+name, "/dist"), "index.html")
	if unpacked, is := strings.CutSuffix(at, ".br"); is {
		at, f.engine = unpacked, content
	} else {
		f.raw, f.packed = content, sync.OnceValue(func() []byte { return pack(content) })
	}
	var known bool
	if f.kind, known = kinds[path.Ext(strings.TrimSuffix(name, ".br"))]; !known {
		return fmt.Errorf("web: %s: unknown file type; add it to kinds", name)
	}
	h[at] = f
	return nil
}

// pack returns content compressed, or nil if it is no shorter then.
func pack(raw []byte) []byte {
	short := packed(raw)
	if len(short) >= len(raw) {
		return nil
	}
	return short
}

// ServeHTTP implements http.Handler for GET and HEAD.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	frames := "'none'"
	if strings.HasPrefix(r.URL.Path, "/lab/") {
		frames = "*"
	}
	header.Add("Content-Security-Policy", fmt.Sprintf(policy, frames)) // a host may have set one of its own
	f := h[r.URL.Path]
	if f == nil {
		if h[r.URL.Path+"/"] != nil {
			// A relative address works behind a proxy that adds a prefix.
			header.Set("Location", path.Base(r.URL.Path)+"/")
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		http.Error(w, fmt.Sprintf("there is no %.200q here", r.URL.Path), http.StatusNotFound)
		return
	}
	header.Set("Content-Type", f.kind)
	// The names of the files do not change with their content, so each is asked for again.
	header.Set("Cache-Control", "no-cache")
	header.Add("Vary", "Accept-Encoding")
	content, etag := f.raw, f.etag
	switch {
	case f.engine != nil && accepts(r, "br"):
		content, etag = f.engine, f.etag+"-br"
		header.Set("Content-Encoding", "br")
	case f.engine != nil:
		content = engineUnpacked()
	case accepts(r, "gzip"):
		if short := f.packed(); short != nil {
			content, etag = short, f.etag+"-gzip"
			header.Set("Content-Encoding", "gzip")
		}
	}
	if f.engine != nil {
		header.Set("X-Unpacked-Length", engineLength())
	}
	header.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// accepts reports whether a client takes content in a coding.
func accepts(r *http.Request, wanted string) bool {
	for entry := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(entry), ";")
		if coding == wanted && strings.TrimSpace(weight) != "q=0" {
			return true
		}
	}
	return false
}
