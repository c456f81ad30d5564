// Package line is the I/O-free core of the client. A Line is a program's connection to a cluster:
// it keeps a session, numbers requests, sends them again after a failure, renews the session,
// computes the deadline until which the program may rely on its holds, and searches for the
// leader.
//
// A Line is a deterministic machine. Step takes one input: a call of the program, a frame of a
// server, the end of a stream, or the time. Outputs returns what the host has to do: open streams,
// send frames, tell callers. Only the host reads clocks and draws random numbers. Package client
// drives a Line with goroutines, a clock and gRPC; internal/test/vopr drives the same code in its
// simulated world.
//
// A program may have several Lines, each with its own session.
//
// # Rules
//
//   - A request keeps its number when it is sent again, so the servers carry it out once.
//   - An Open is sent once, over one stream, and each Open has its own secret. So an old Open that
//     arrives late cannot revive a session that has ended.
//   - The deadline of the session counts from the first transmission of the request that was
//     answered, less a margin. It never moves back. Once it has passed, the session is lost
//     forever, whatever is answered later.
//   - If the servers ask for a hold back before its grant has arrived, the grant is given back and
//     the call begins again: another may hold the lock by then.
//   - If a session is lost on this side, it is closed at the servers. An unwanted grant is
//     released.
//   - The first server that welcomes the client is used. While it leaves requests unanswered,
//     others are tried in addition. The first of them that carries out a request replaces it.
//
// # Homes
//
// A Line may connect to a home, for the locks that algorithms on the servers guard. In that case
// one server keeps the session by itself, and these rules differ:
//
//   - A session that holds or waits for something stays at its home: no other server is tried
//     before its deadline. It is gone if the home welcomes it with a different seat.
//   - A home that stops names the server that has taken over its sessions. Each session continues
//     there if its seat is among those that the server has adopted.
//   - Nothing is promised beyond the lease of the home's seat. So renewals are more frequent, and
//     the margin is that of the shorter of lease and TTL.
//   - A call that is answered with MOVED is also withdrawn: a home that receives it again may
//     carry it out.
//   - A session that has not been used for a while is closed.
package line
