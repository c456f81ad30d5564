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
// it holds one lock or ten thousand. A broken connection ends nothing: the
// client reconnects, follows the servers' leader, and sends again what was not
// answered; each request is carried out once. Only silence for a whole TTL ends
// the session at the servers, and then all that it holds passes on.
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
// Whoever loses a lock knows it before anyone else can get it, as long as its
// process and its clock run. The client computes a deadline from the moment at
// which it sent the last renewal that succeeded and what the server said
// remained then, less a margin of TTL/10 but at least 100 ms (TTL/3 if the TTL
// is under 1 s). When the deadline passes, a handle's Context ends, with ErrLost
// as its cause, and Fence fails. A handle once lost stays lost; a new session
// serves later calls. The clock is one that nobody sets and that runs on while
// a Linux machine is suspended.
//
// # What is not promised
//
// A process that is paused (SIGSTOP, a debugger, a frozen virtual machine)
// cannot notice that it lost a lock. After it wakes, the first look at Context
// or Fence tells it, but what it was about to send may leave before it looks. A
// write that is already on its way cannot be called back either. Only the fence
// stops such writes: hand Fence and Floor to the store with each write. Let the
// store remember the largest floor that it has seen, and refuse smaller fences.
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
// at the end. A call whose ctx ends leaves the queue; if the grant was already
// on its way, it is given back.
//
// A Client takes any number of calls at once: requests of different goroutines
// travel together, and fewer than 1,024 are unanswered at any time; calls beyond
// that wait for their turn.
package conclave
