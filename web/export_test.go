package web

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A static site has the lab with its policy, and the engine in all its forms. A build
// without the engine says so and writes nothing.
func TestExport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	err := Export(dir)
	if !HasEngine() {
		if _, there := os.Stat(dir); !errors.Is(err, ErrNoEngine) || there == nil {
			t.Errorf("without an engine: %v, and the folder: %v", err, there)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return content
	}
	page := string(read("lab/index.html"))
	if !strings.Contains(page, "Content-Security-Policy") || strings.Contains(page, "frame-ancestors") || strings.Contains(page, "%s") {
		t.Errorf("the policy of the page is wrong:\n%s", page)
	}
	if !bytes.HasPrefix(read("engine/engine.wasm"), []byte("\x00asm")) || len(read("engine/engine.wasm.br")) == 0 || len(read("engine/engine.wasm.gz")) == 0 {
		t.Error("the engine is not there in all its forms")
	}
	if !strings.Contains(string(read("index.html")), "lab/") || len(read("engine/worker.js")) == 0 || len(read("engine/wasm_exec.js")) == 0 {
		t.Error("the site does not lead to the lab, or the engine cannot be loaded")
	}
}

func TestTheEngineIsServed(t *testing.T) {
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	const at = "/engine/engine.wasm"
	packed, plain := get(t, h, at, "Accept-Encoding", "gzip, br"), get(t, h, at)
	if !HasEngine() {
		if packed.StatusCode != 404 {
			t.Errorf("without an engine: %s", packed.Status)
		}
		return
	}
	raw := body(t, plain.Body)
	if packed.Header.Get("Content-Encoding") != "br" || plain.Header.Get("Content-Encoding") != "" || plain.Header.Get("Content-Type") != "application/wasm" {
		t.Errorf("the engine comes as %v and %v", packed.Header, plain.Header)
	}
	if !strings.HasPrefix(raw, "\x00asm") || len(body(t, packed.Body)) >= len(raw)/2 || packed.Header.Get("Etag") == plain.Header.Get("Etag") {
		t.Error("the engine is not what was packed")
	}
}
