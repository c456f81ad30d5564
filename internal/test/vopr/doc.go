// Package vopr runs the production server in a simulated world and injects faults, to check
// whether its promises hold.
//
// A run has a cluster of three or five servers, eight clients with two workers each, an operator
// who changes the members, and a plan of faults: see faults.Kind. The servers run internal/service/founding and
// internal/service/replica, which is the code of the real server: their role, agreement, registry and
// leases. All time is virtual and all randomness comes from seeds. So a plan determines a run
// completely, and the same plan gives the same run: compare Result.Digest.
//
// Package world has the servers, the clients and the judge. A server has a machine, a disk and a
// transport, which are packages of their own, like the network. So are the judges that need little of the
// world: history, turns, deadlock, patience and trace. Package guarded adds algorithms
// that guard names, and package rules an administrator who changes rules. Package faults draws plans,
// package stats counts, and package mutants has mistakes that a run must find.
//
// # What is real and what is simulated
//
// Real are founding, replica, agreement with etcd's raft, registry, the streams of clients, what
// observers are told (internal/service/stream), and the encoding of messages. Simulated are the parts of
// internal/service/node, internal/service/transport and internal/service/store: ticks and clocks, a network, a disk.
//
// Servers start with empty disks, some of them late, and found their cluster. They dial
// each other, do handshakes, ping, close silent connections, and try again, like
// internal/service/transport, according to internal/service/peering: introductions and refusals in their
// encoding, which servers are refused, which connection counts, and how long to pause. A
// connection may break, and that may be noticed late, or at one end only. Messages on it
// may be lost, repeated, and overtake each other; those of a handshake may not. Package
// peering also decides, with smaller bounds, what is sent to a peer, in which order, what
// is dropped and when that is reported. A connection may have a few messages under way
// that the other end has not taken; the rest waits in the queue. So queues fill up in
// front of a suspended server, a blocked connection, or a server whose messages take
// long. A snapshot has its own connection, travels in parts, and may be cut off. The
// connection of an earlier process or directory may still count when that of a later one
// begins. A server receives and answers while it still reads its disk. The real server
// does not do that; it reports that it is not ready.
//
// A disk has the UID of the directory, the founding record and the state of the replica. A crash
// may come between any two writes. A server may lose its whole disk, or only the file with the
// record. The store refuses a directory that lost only the log, and the operator then empties the
// rest. Disks are emptied only while acknowledged data is safe: in every configuration that any
// server knows, fewer than half of the voters have lost their disks without having been taken
// back, and no member is being removed.
//
// The disk fulfils the contract of internal/service/store. Writes happen one after the other, except files
// of snapshots, which are written in parallel. Waiting writes share an fsync. A save is there
// completely or not at all. A crash loses what was not synced; of the write under way, any of the
// sectors may be there. That the real store fulfils the contract, whichever part of the unsynced
// data is there, is shown by its TestCrash.
//
// Clients run the core of the Go client (internal/client/line), which package client drives with
// goroutines, gRPC and a clock. Servers run the code that makes the decisions about client streams
// in internal/service/server and internal/service/node: internal/service/stream (sessions and their secrets, the outbox,
// passing streams on, and their end) and internal/service/queue (the turns of connections). A server relays
// the stream of a client that cannot reach the leader, over a second stream. Each side of a
// stream sends a few frames ahead of what the other has read. A client that asks for hundreds of
// locks may stop reading its streams for a while; then too many replies wait, and its stream is
// cut. Streams between clients and servers may deliver out of order. A real network does not do
// that, but both sides promise to tolerate it.
//
// Some clients observe an election, or watch all locks or elections with a prefix, from one
// server after another. Their streams keep the order, like those of gRPC. Some clients try to
// steal: they send a request in another client's session, with its id, which lists show, or with
// its secret. In a fifth of the plans servers limit the state, each to a different size, and
// floods of requests have large values. In a seventh of the plans some clients prove the same name, and
// flood at the same time as one that does not.
//
// With -live, servers have seats, and an operator changes which algorithm guards which names. In
// plans with hosts each server runs the algorithms (internal/service/host) beside its replica, frames
// travel on lanes that keep order and may break, and clients have their second line, to a home:
// see hosting. In a third of those, programs within the server processes hold names near: see
// nearby. In the other plans with -live a stand-in replaces the algorithms, with homes that leave and
// have an heir: see seating. Its clients rely on their holds as long as any client may: until the
// end of what they were told, less the margin, by a clock that is as slow as allowed.
//
// # What is required
//
// The judge checks after each step:
//
//   - Mutual exclusion: nobody enters while another holds. A hold lasts from the arrival of the
//     grant at its client until the release, the deadline, or the message that it is asked to
//     leave. A semaphore has at most k holders; readers and writers exclude each other.
//   - Nobody enters with a grant whose hold its client was asked to release before.
//   - A fence is larger than all fences known at the time of the request, and is given only once.
//     A store that remembers the largest floor and refuses smaller fences refuses no present
//     holder, and refuses all late writers behind a holder that excludes others; the late writes
//     that it refuses are counted.
//   - On every server that has applied what the client was told, a session lives until the
//     deadline of its client, and a hold until it is released.
//   - A session that an operator ends may end earlier, but no hold of it before its client was
//     told, or before its deadline has passed.
//   - A request that was told that it waits is granted before later ones. Candidates of an
//     election are elected by priority first.
//   - An election leader that hands over is followed by the candidate that it named, unless that
//     has stopped waiting. A transfer is refused only if no such candidate waits.
//   - A name stays closed after a hold for as long as its request asked. A job that three machines start
//     in each period, with clocks that are 1.5 s apart, runs at most once in each.
//   - A server that leads and is asked to hand over does so within a second, if nothing is wrong.
//   - What the servers store about the end of holds is what happened: each hold once, with its
//     fence, its owner, who asked it to leave and why. Nobody is asked to leave for a reason that
//     nobody gave.
//   - An observer is told states in order, whichever server tells them. While a majority is well,
//     it is told the current state from time to time, and at the end it has it.
//   - Nobody acts in the session of another.
//   - During a flood, a single waiting request gets into the log within a few turns. While two
//     principals have a backlog, each gets about as many requests into the log as the other, however
//     many sessions it has.
//   - Under a leader that has settled, the state grows no further than the server allows. A
//     request that makes it no larger is never refused because of the limit.
//   - A release before the deadline finds the hold.
//   - All of that also holds for locks that an algorithm guards at times, except for the order of
//     waiters, the result of a try, and histories. Fences are compared for each name. No seat ends
//     while a client of its home holds something, and no hold begins at a home whose seat has
//     ended. An epoch has one list of members, with one seat of each server.
//   - In one epoch, no more machines of a name are inside than allowed, and their fences grow. A
//     member asks for names when all have sent RESUMED. Each member sends it after it has entered
//     again what its clients hold. A member that has sent QUIET stays quiet. All frames of an
//     epoch are accepted. A name that is wanted and free is granted soon.
//   - Servers apply the same entry at the same index, and are then in the same state. At most one
//     server leads in a term. No server stops by itself unless the plan says so.
//   - A candidate replaces a leader of lower priority after the time that it set, at most a second
//     or two later while nothing is wrong, although wall clocks of servers are set forward and back
//     by up to a year. It never does so earlier.
//   - While a majority of the voters is up, has disks that work and can communicate, every client
//     gets an answer within 3 s, whichever server's disk hangs.
//   - Once all faults have healed, all waiters are served within 60 s, and all servers reach the
//     same state.
//   - After that, when nobody wants anything any more, nothing is held.
//   - A session that has ended is never open again.
//   - A server is never connected with two directories that have the same server id.
//   - Messages to a server leave in order, at most once, and on the connection that was there when
//     they were offered. None is dropped while there is room, the queue stays within its bound, and
//     losses are reported in time. The result of a snapshot is reported once, and if it is
//     reported as sent, it has arrived.
//   - Every reply to a client is sent, unless its stream ends.
//   - No stream stays at a server that does not lead, unless that server passes it on to the
//     leader. No stream is passed on twice.
//   - A client releases what it was granted, once, and nothing else.
//   - What clients saw of each resource, including queries, is linearizable.
//   - Package leasemodel allows the decisions of servers and clients about sessions: votes,
//     rounds, leases, verdicts, deadlines. All of it is observed from outside: from what a server
//     stores, sends, answers, has applied and shows about a lease, and from what a client sends
//     and relies on.
//   - A server founds the cluster at most once, and all founders with the same record. What it
//     tells others about its record and its state is on its disk.
//   - A server without state votes for nobody, and answers no leader that counts its vote.
//   - Once all faults have healed, every server that lost its disk is taken back.
//
// # Why the simulator of algorithms is not used
//
// Package sim hosts process.Machine: one message struct with few fields, timers that a machine
// arms, and steps that process one event. A replica exchanges raft's messages, is ticked, answers
// many inputs with one output, and is told what a disk has done. The queue and the delays of
// package sim are made for its own world and are not exported. Here, a heap and two dozen lines
// that draw random numbers replace them.
//
// # Mutants
//
// A check that never fails shows nothing. Mutants are servers with a plausible mistake. The
// checks must find each of them.
package vopr
