// Package line is the core of the client: a line from a program to a cluster, without
// input and output. It keeps a session, numbers requests, sends them again after a
// failure, renews the session, computes the deadline up to which the program may
// believe in its holds, and searches for the leader.
//
// A Line is a deterministic machine. Step takes one input: a call of the program, a
// frame of a server, the end of a stream, or the time. Outputs returns what the host
// has to do: open streams, send frames, tell callers. The host is the only one that
// reads clocks and draws chance. The root package drives a Line with goroutines, a clock
// and gRPC; internal/vopr drives the same code in its simulated world.
//
// A program may have several Lines, each with its own session.
//
// # Rules
//
//   - A request keeps its number when it is sent again, so the servers carry it out once.
//   - An Open is sent once, over one stream, and no other is sent under its secret. So an
//     old one that arrives late cannot revive a session that has ended.
//   - The deadline of the session counts from the first transmission of the request that
//     was answered, less a margin. It never moves back. Once it has passed, the session
//     is lost forever, whatever is answered later.
//   - A session that is lost on this side is closed at the servers. A grant that nobody
//     wants is given back.
//   - The first server that welcomes the client is used. While it leaves requests
//     unanswered, others are tried beside it. The first of them that carries out a
//     request takes its place.
//
// # Homes
//
// A Line may be one to a home, for the locks that algorithms on the servers guard. Then
// one server keeps the session by itself, and the rules differ in this:
//
//   - A session that holds or waits for something stays at its home: no other server is
//     tried before its deadline. It is gone when the home welcomes it with another seat.
//   - A home that stops names the server that has taken its sessions over. Each goes on
//     there, if the seat of its home is among those which that server has adopted.
//   - Nothing is promised beyond the lease of the home's seat, so renewals are more
//     frequent and the margin is that of the shorter of lease and TTL.
//   - A call that is answered with MOVED is withdrawn too: a home that is asked again may
//     carry it out.
//   - A session for which nothing was asked in a while is closed.
package line
