// Package engine answers the requests of the lab's page. It runs scenarios, keeps their journals,
// and describes what happened in them.
//
// It does no input or output. A host gives it requests and sends the frames of its answers. The
// host is a worker of a browser (web/wasm), or conclave lab on loopback. Both use the protocol that
// protocol.go declares and docs/lab/protocol.md describes.
//
// Only one goroutine may use an Engine. An Engine works on a long request in slices. So it can
// answer other requests in between, including one that cancels the long request.
package engine
