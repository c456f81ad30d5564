// Package conclave is the Go client of a Conclave cluster: locks, elections and
// fences for programs on different machines.
//
//	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"127.0.0.1:7400"}})
//	...
//	defer client.Close()
//	lock, err := client.Lock(ctx, "reports/nightly")
//	...
//	defer lock.Unlock(context.Background())
//	fence, err := lock.Fence()
//	...
//	err = store.Write(lock.Context(), fence, report)
//
// # What holds a lock
//
// A Client has one session with the cluster, and the session holds the locks of
// all its goroutines. The client renews it every quarter of Config.TTL, whether
// it holds one lock or ten thousand. A broken connection does not end the
// session: the client reconnects, follows the servers' leader, and resends what
// was not answered. Each request is carried out once. The servers end the
// session only after silence for a whole TTL. Then others get what it held.
//
// The client draws a secret for each session and keeps it to itself. Lists show a
// public id (Client.SessionID), with which nobody can act in the session, and the
// owner: the principal that the client's certificate names.
//
// Two calls that lock one name exclude each other, also within one Client:
// locks are not re-entrant.
//
// # What is promised
//
// A lock is never granted to two at once, and every grant carries a fence
// larger than that of every earlier grant.
//
// A process that loses a lock knows it before another process can get it, as long
// as it runs and its clock runs. The client computes a deadline: the time at which
// it sent the last successful renewal, plus the remaining time in the answer, minus
// a margin of TTL/10 but at least 100 ms (TTL/3 if the TTL is under 1 s). When the
// deadline passes, a handle's Context ends, with ErrLost as its cause, and Fence
// fails. A lost handle stays lost. Later calls use a new session. The client uses a
// clock that cannot be set, and that on Linux continues while the machine is
// suspended.
//
// # What is not promised
//
// A process that is paused (SIGSTOP, a debugger, a frozen virtual machine)
// cannot notice that it lost a lock. After it wakes, the first call of Context.Err
// or Fence reports the loss, but the process may send a write before that call. A
// write that is already in transit cannot be stopped either. Only the fence stops
// such writes: send Fence and Floor to the store with each write. The store must
// remember the largest floor that it has seen, and refuse smaller fences.
//
// A context derived from a handle's Context ends with it by a timer, as do all
// contexts; only Context itself reads the clock.
//
// # What ends Context
//
//   - The deadline passes, or the server answers that the session is gone:
//     cause ErrLost.
//   - Unlock or Resign is called, or the Client is closed: cause ErrReleased.
//
// # Waiting
//
// Lock and Campaign wait in the order in which the cluster received them, for
// as long as their ctx lives, through changes of leader and while no server can
// be reached. If the session itself is lost while they wait, they queue again
// at the end. A call whose ctx ends leaves the queue. If the grant was already in
// transit, it is released.
//
// A Client takes any number of calls at once: requests of different goroutines
// travel together, and fewer than 1,024 are unanswered at any time; calls beyond
// that wait for their turn.
//
// # Other packages
//
// Package admin has what operators of a cluster do: members, rules of access, the audit log,
// the end of holds and sessions of others, guards and backups. Package embed runs a server
// inside the program that uses it.
package conclave
