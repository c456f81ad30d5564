// Package engine answers the requests of the lab's page: it runs scenarios, keeps
// their journals, and describes what happened in them.
//
// It does no input or output. A host hands it requests and sends on the frames that
// it answers with: a worker of a browser (web/wasm), or conclave lab on loopback. Both
// speak the protocol that protocol.go declares and docs/lab/protocol.md describes.
//
// An Engine is used by one goroutine. A request that takes long is done in slices, so
// that others, and the one that cancels it, get in between.
package engine
