//go:build !js

// Command wasm is the engine of the lab for a worker of a browser. It takes requests by
// onmessage and sends frames by postMessage, as docs/lab/protocol.md says; worker.js loads
// it.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "wasm: this is for browsers: build it with GOOS=js GOARCH=wasm, or with make wasm")
	os.Exit(1)
}
