//go:build js

package main

import (
	"encoding/json"
	"runtime/debug"
	"syscall/js"

	"github.com/conclave-io/conclave/lab/engine"
)

// memory is what a run may take: phones end tabs that take much more.
const memory = 256 << 20

// worker connects an engine to the worker that it runs in.
type worker struct {
	engine  *engine.Engine
	self    js.Value
	turns   js.Value // a port: what is sent to it comes back after what waits already
	waiting bool     // for the next turn
}

func main() {
	w := &worker{self: js.Global()}
	w.engine = engine.New(engine.Options{Build: build(), Host: "wasm", Cores: 1, Memory: memory, Send: w.send})
	channel := js.Global().Get("MessageChannel").New()
	w.turns = channel.Get("port2")
	channel.Get("port1").Set("onmessage", js.FuncOf(func(js.Value, []js.Value) any {
		w.waiting = false
		w.work()
		return nil
	}))
	w.self.Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		w.receive(args[0].Get("data"))
		return nil
	}))
	w.post(map[string]any{"ready": true})
	select {}
}

// build is the version that the Go tool has recorded.
func build() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// receive takes a request, and begins to work on it if it is a long one.
func (w *worker) receive(data js.Value) {
	text := js.Global().Get("JSON").Call("stringify", data).String()
	var r engine.Request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		w.send(engine.Frame{ID: r.ID, Type: engine.TypeError, Head: &engine.Problem{Code: engine.CodeRequest, Message: err.Error()}})
		return
	}
	w.engine.Receive(&r)
	w.work()
}

// work does a slice of what is to be done. The next one comes after the messages that
// wait already.
func (w *worker) work() {
	if !w.waiting && w.engine.Work() {
		w.waiting = true
		w.turns.Call("postMessage", js.Null())
	}
}

// send posts a frame. The body is transferred.
func (w *worker) send(f engine.Frame) {
	head, err := f.Header()
	if err != nil {
		panic(err)
	}
	header := js.Global().Get("JSON").Call("parse", string(head))
	if f.Body == nil {
		w.post(map[string]any{"header": header, "body": nil})
		return
	}
	bytes := js.Global().Get("Uint8Array").New(len(f.Body))
	js.CopyBytesToJS(bytes, f.Body)
	body := bytes.Get("buffer")
	w.post(map[string]any{"header": header, "body": body}, body)
}

func (w *worker) post(message map[string]any, transfer ...any) {
	w.self.Call("postMessage", message, transfer)
}
