// Package stream makes the decisions about client streams at a server, without I/O: who is served
// here and who is passed on to the leader, in which session a request acts, which replies go back
// and under which secret, what happens to a client that does not read its replies, and when a
// stream ends. It also decides what observers of elections and watchers of locks are told, and
// translates requests to commands, and outcomes and views to messages.
//
// Its types are deterministic machines. The host moves frames, reads the clock and locks. Package
// attach drives them with goroutines and gRPC; internal/test/vopr drives the same code in its
// simulated world.
//
// # What is promised
//
//   - A request acts in the session that [registry.Derive] computes from the proven name of the
//     client and the secret that the client sent. Only the first server gets the secret. A
//     server that passes a stream on sends the id instead, and the leader accepts that id. So a
//     session is the same over every server.
//   - A reply goes back under the secret of its request, and to no other session of the
//     stream.
//   - An [Outbox] drops no reply of a stream that continues. If a client reads too few
//     replies, no more of its requests are accepted; if far too many wait, the stream is cut.
//   - A stream ends when its client has closed its side and has every answer, when the server
//     stops leading, or when the client makes a mistake. Everything queued before the end is sent.
//   - A stream is passed on only once, so two servers that take each other for the leader do
//     not send it back and forth.
//   - A [Relay] ends when the leader does not answer at first, when its stream to the leader
//     ends, and when another server leads. The client is told, and tries again.
//   - An [Election] and a [Watch] are given versions of the state in order, so the changes that
//     they report are in order too. They report the state of a version. Changes between two
//     versions are reported once, as the newest state, or not at all.
package stream
