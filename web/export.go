package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoEngine says that this binary was built without the engine for browsers.
var ErrNoEngine = errors.New("this build has no engine for browsers: use a release, or build with make build")

// front leads from the root of a static site to the lab.
const front = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Conclave Lab</title>
<meta http-equiv="refresh" content="0; url=lab/"></head>
<body><a href="lab/">Conclave Lab</a></body></html>
`

// Export writes the lab as a static site into a folder, which is made if it is not there.
// Any server of files can serve it. The engine is there unpacked and for servers that
// offer packed files beside others.
func Export(dir string) error {
	if !HasEngine() {
		return ErrNoEngine
	}
	h := make(handler)
	if err := h.fill(); err != nil {
		return err
	}
	for at, f := range h {
		name, content := strings.TrimPrefix(at, "/"), f.raw
		switch {
		case at == "/":
			name, content = "index.html", []byte(front)
		case strings.HasSuffix(at, "/"):
			name, content = name+"index.html", withPolicy(f.raw)
		case f.engine != nil:
			content = engineUnpacked()
			if err := writeFile(dir, name+".br", f.engine); err != nil {
				return err
			}
			if err := writeFile(dir, name+".gz", packed(content)); err != nil {
				return err
			}
		}
		if err := writeFile(dir, name, content); err != nil {
			return err
		}
	}
	return nil
}

// withPolicy adds to a page the policy that a server of files does not send. The policy
// in the page cannot say which sites may frame it.
func withPolicy(page []byte) []byte {
	text, _, _ := strings.Cut(policy, "frame-ancestors")
	_, trusted, _ := strings.Cut(policy, "%s; ")
	meta := fmt.Sprintf("<meta charset=\"utf-8\" />\n    <meta http-equiv=\"Content-Security-Policy\" content=\"%s\" />", html.EscapeString(text+trusted))
	return bytes.Replace(page, []byte(`<meta charset="utf-8" />`), []byte(meta), 1)
}

func packed(content []byte) []byte {
	var b bytes.Buffer
	// Only a level out of range, or a writer that fails, gives an error.
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

func writeFile(dir, name string, content []byte) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("web: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("web: %w", err)
	}
	return nil
}
