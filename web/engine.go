package web

import (
	"bytes"
	"io"
	"strconv"
	"sync"

	"github.com/andybalholm/brotli"
)

// engineFile is the engine of the lab as make wasm builds it.
const engineFile = "engine/engine.wasm.br"

// HasEngine reports whether this binary has the engine for browsers.
func HasEngine() bool {
	_, err := files.Open(engineFile)
	return err == nil
}

// engineUnpacked returns the engine for clients that do not take Brotli.
var engineUnpacked = sync.OnceValue(func() []byte {
	raw, err := io.ReadAll(engineReader())
	if err != nil {
		panic("web: the engine that was built in is damaged: " + err.Error())
	}
	return raw
})

// engineLength returns how long the engine is unpacked, so that a page can say how much
// of it has come. It does not keep the engine.
var engineLength = sync.OnceValue(func() string {
	n, err := io.Copy(io.Discard, engineReader())
	if err != nil {
		return "0"
	}
	return strconv.FormatInt(n, 10)
})

func engineReader() io.Reader {
	packed, err := files.ReadFile(engineFile)
	if err != nil {
		return bytes.NewReader(nil)
	}
	return brotli.NewReader(bytes.NewReader(packed))
}
