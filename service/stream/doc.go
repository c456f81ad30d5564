// Package stream decides about the streams of clients at a server, without input and
// output: who is served here and who is passed on to the leader, in which session a
// request acts, which replies go back and under which secret, what happens to a client
// that does not take its replies, and when a stream ends.
//
// Its types are deterministic machines. The host moves frames, reads the clock and takes
// locks. Package server drives them with goroutines and gRPC; internal/vopr drives the
// same code in its simulated world.
//
// # What is promised
//
//   - A request acts in the session that [registry.Derive] makes of the proven name of
//     the client and the secret that the client sent. The secret goes no further than
//     to the first server. A server that passes a stream on sends the id in its place,
//     and the leader takes that id as it is. So a session is the same over every server.
//   - A reply goes back under the secret that its request came with, and to no other
//     session of the stream.
//   - An [Outbox] drops no reply of a stream that goes on. If a client takes too few,
//     no more of its requests are taken; if there are far too many, the stream is cut.
//   - A stream ends when its client asks for nothing more and has every answer, when the
//     server ceases to lead, or when the client makes a mistake. What is queued before
//     the end is sent before the end.
//   - A stream is passed on once. Two servers that take each other for the leader do not
//     send it to and fro.
//   - A [Relay] ends when the leader does not answer at first, when its stream to the
//     leader ends, and when another server leads. The client is told, and tries again.
package stream
