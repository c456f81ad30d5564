// Package vopr puts the production server into a simulated world and breaks what can
// break there, to see whether its promises hold.
//
// A run is a cluster of three or five servers (service/founding and service/replica: what
// a server is, agreement, registry and leases, the code of the live server), eight
// clients with two workers each,
// an operator who changes the members, and a plan of faults: see Kind. All time is
// virtual and all chance comes from seeds, so that a plan is all that decides a run,
// and the same plan gives the same run: Result.Digest tells.
//
// # What is real and what is simulated
//
// Real are founding, replica, agreement with etcd's raft, registry, the streams of clients,
// what observers are told (service/feed), and the encoding of messages. Simulated are what
// service/node, service/transport and service/store give
// them: ticks and clocks, a network, a disk.
//
// Servers start with empty disks, some of them late, and found their cluster. They dial
// each other, shake hands, ping, hang up on who is silent, and try again, as
// service/transport does, by what service/peering decides: introductions and refusals in
// their encoding, whom a server refuses, which connection counts, and how long to pause. A
// connection breaks, and may be noticed late, at one end only. Messages on it may be lost,
// repeated, and overtake each other; what a handshake says is not. What is sent to a peer,
// in which order, what is dropped and when that is reported is decided by service/peering
// too, with smaller bounds: a connection has a few messages under way ahead of what the
// other end has taken, and the rest waits in the queue. So queues fill behind a server that
// stands still, a way that is blocked, and a server whose messages take long. A snapshot
// has a connection of its own, travels in parts, and may break off. The connection of an
// earlier process or directory may still count when that of a later one begins. A server
// hears and answers while it still reads its disk, which the live server does not: it is
// not ready then.
//
// A disk has the UID of the directory, the founding record and the state of the replica.
// A crash may come between any two writes. A server may lose all of its disk, or the file
// with the record. One that lost the log alone is refused by the store, and its operator
// empties the rest. Disks are emptied only while acknowledged data is safe: less than half
// of the voters, in every configuration that any server knows, may have lost their disks
// and not been taken back, and no member is being removed.
//
// The disk keeps the contract of
// service/store: writes one after the other, but for files of snapshots, which are
// written beside them; those that wait share an fsync, a save is
// there as a whole or not at all, and what was not synced is lost at a crash, but for
// the write under way, of which any of the sectors may be there. That the store keeps
// it, whatever part of what it had not synced is there and in whatever order, is for
// its TestCrash to show.
//
// Clients run the core of the Go client (internal/line), which the root package drives
// with goroutines, gRPC and a clock. Servers run what service/server and service/node
// decide about the streams of clients: service/stream (sessions and their secrets, the
// outbox, whom a stream is passed on to, and when it ends) and service/queue (the turns of
// connections). A server relays the stream of a client that does not reach the leader, over
// a second stream. Each side of a stream sends a few frames ahead of what the other has
// taken. A client that asks for hundreds of locks may take nothing from its streams for a
// while; then too many replies wait, and its stream is cut off. Streams between clients and
// servers may deliver out of order, which is more than a network does to them and no more
// than both promise to bear.
//
// Some clients observe an election, or watch all locks or elections with a prefix, from
// server to server. Their streams keep the order, as gRPC's do. Some clients steal: they
// ask for something in the session of another, by its id, which lists show, or by its
// secret. In a fifth of the plans servers bound the state, each by another size, and
// floods of requests have large values.
//
// In plans that are live servers have seats, and an operator changes what guards which
// names. In those with hosts each server runs the algorithms (service/host) beside its
// replica, frames travel on lanes that keep their order and break, and clients have their
// second line, to a home: see hosting. In a third of those programs within the processes of
// servers hold names near: see nearby. In the others a stand-in takes the place of the
// algorithms, with homes that leave and have an heir: see seating. Clients in it believe as
// long as any may: to the end of what they were told, less the margin, by a clock that is
// as slow as allowed.
//
// # What is required
//
// The judge looks on after each step:
//
//   - Nobody enters while another holds: from the grant's arrival at its client to the
//     release, the deadline, or the news that it is asked to leave. At most k for a
//     semaphore; readers and writers exclude each other.
//   - A fence is larger than all that were known when it was asked for, and given once.
//     A store that remembers the largest floor and refuses smaller fences refuses no
//     present holder, and refuses all who come late behind a holder that excludes
//     others; late writes that it does refuse are counted.
//   - A session lives until the deadline of its client, and a hold until it is given
//     up, on every server that has applied what the client was told.
//   - A session that an operator ends may be over earlier, but no hold of it before its
//     client was told, or its deadline has passed.
//   - Who is told that it waits is granted before those who ask after that. Candidates of
//     an election are elected by priority first.
//   - A leader of an election that hands over is followed by the candidate that it named,
//     unless that stopped to wait. A transfer is refused only if no such candidate waits.
//   - A server that leads and is asked to hand over does so within a second, if nothing is
//     wrong.
//   - What the servers remember of how holds ended is what happened: each hold once, with
//     its fence, its owner, and who asked it to leave and why. Nobody is asked to leave
//     for a reason that nobody gave.
//   - An observer is told states in order, whichever server tells them. While a majority
//     is well, what it was told is the state now and then, and in the end it is.
//   - Nobody acts in the session of another.
//   - Beside a flood, a request that waits alone gets into the log within a few turns.
//   - The state grows no further than a server allows, under a leader that has settled,
//     and what makes it no larger is never refused for that.
//   - A release before the deadline finds what it releases.
//   - All of that holds for locks that an algorithm guards at times, but for the order of
//     those who wait, what a try finds, and histories. Fences are compared for each name.
//     No seat ends while a client of its home holds something, and no hold begins at a home
//     whose seat has ended. An epoch has one list of members, with one seat of a server.
//   - In one epoch no more machines of a name are inside than may be, and their fences grow.
//     A member asks for names when all have said RESUMED, which each says after it has
//     entered again what its clients hold. What has said quiet stays quiet. All frames of an
//     epoch are taken. A name that is wanted and free is granted soon.
//   - Servers apply the same entry at the same index, are then in the same state, and
//     one leads in a term. No server stops by itself but by plan.
//   - A candidate takes the place of a leader of lower priority in the time that it
//     said, a second or two later at most while nothing is wrong, though wall clocks
//     of servers are set forward and back by up to a year. It never does so sooner.
//   - While a majority of the voters is up, has disks that work and can talk, every
//     client gets an answer within 3 s, whichever server's disk hangs.
//   - Once all faults have healed, everyone who waits is served within 60 s, and all
//     servers come to the same state.
//   - Then, when nobody wants anything any more, nothing is held.
//   - A session that has ended is never open again.
//   - A server is not connected with two directories that have the id of one server.
//   - Messages for a server leave in order, once, and on the connection that was there when
//     they were offered. None is dropped while there is room, no more wait than may, and a
//     loss is reported in time. What became of a snapshot is told once, and it has come if
//     that is told.
//   - Every reply for a client is sent, unless its stream ends.
//   - No stream stays at a server that does not lead, unless that passes it on to the
//     leader. No stream is passed on twice.
//   - A client releases what it was granted, and nothing else, once.
//   - What clients saw of each resource, queries included, is linearizable.
//   - Package leasemodel allows what servers and clients decide about sessions: votes,
//     rounds, leases, verdicts, deadlines. All of it is seen from outside: in what a
//     server stores, sends, answers, has applied and shows of a lease, and in what a client
//     sends and believes.
//   - A server founds the cluster at most once, and all founders by the same record. What
//     it tells others of its record and its state is on its disk.
//   - A server without state votes for nobody, and answers no leader that counts on its
//     vote.
//   - Once all faults have healed, every server that lost its disk is taken back.
//
// # Why the simulator of algorithms does not carry it
//
// Package sim hosts process.Machine: one message struct with a small vocabulary, timers
// that a machine arms, a step that is given one event. A replica takes raft's messages,
// is ticked, answers many inputs with one output, and reports what a disk has done. Its
// queue and its delays are made for that world and not exported. What is here in their
// place is a heap and two dozen lines of chance.
//
// # Mutants
//
// A check that never fails shows nothing. Mutants are servers with a mistake that is
// easily made, of which each must be found.
package vopr
