package conclave

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// ErrDeadlock means that a call would wait forever: the holder of what it waits for waits, directly
// or through others, for what this caller keeps. The error that matches it is a *DeadlockError,
// which names the cycle. Release what is kept, so that the others can continue, and start again.
var ErrDeadlock = errors.New("deadlock")

// MaxKeeps is how many holds a call keeps at most. If there are more, the last ones
// count.
const MaxKeeps = client.MaxKeeps

// Kept names a hold that a caller keeps while it waits for another. Kept.MarshalText
// writes it for other processes.
type Kept struct {
	Cluster  string // the identity of the cluster
	Election bool   // Name is that of an election, not of a lock
	Name     string
	Fence    uint64
}

var (
	_ encoding.TextMarshaler   = Kept{}
	_ encoding.TextUnmarshaler = (*Kept)(nil)
)

// MarshalText returns a text without spaces and control characters.
func (k Kept) MarshalText() ([]byte, error) {
	class := "lock"
	if k.Election {
		class = "election"
	}
	return fmt.Appendf(nil, "%s/%s/%d/%s", k.Cluster, class, k.Fence, url.PathEscape(k.Name)), nil
}

// UnmarshalText reads what MarshalText wrote.
func (k *Kept) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "/")
	if len(parts) != 4 || parts[1] != "lock" && parts[1] != "election" {
		return fmt.Errorf("conclave: kept hold: %.80q: expected CLUSTER/lock/FENCE/NAME or CLUSTER/election/FENCE/NAME", text)
	}
	fence, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return fmt.Errorf("conclave: kept hold: %.80q: fence: %.20q: expected an integer", text, parts[2])
	}
	name, err := url.PathUnescape(parts[3])
	if err != nil {
		return fmt.Errorf("conclave: kept hold: %.80q: %w", text, err)
	}
	if err := ValidateName(name); err != nil {
		return fmt.Errorf("conclave: kept hold: %.80q: %w", text, err)
	}
	*k = Kept{parts[0], parts[1] == "election", name, fence}
	return nil
}

// Kept names this hold.
func (l *Lock) Kept() Kept { return Kept(l.hold.Kept()) }

// Kept names this leadership.
func (l *Leadership) Kept() Kept { return Kept(l.hold.Kept()) }

// Keeping returns a context that says what the caller of Lock and Campaign keeps while
// the call waits: these holds and no others. With none it says that the caller keeps
// nothing, so that its calls are never refused for a deadlock.
//
// The context of a hold says so by itself: whoever waits under it keeps the hold, and
// what was kept while that was waited for. Keeping is for what this is not true of: a
// hold that another goroutine may release meanwhile, several holds that were acquired
// side by side, and the holds of another process that waits for this one. The servers
// ignore a hold that has ended, and those of another principal.
func Keeping(ctx context.Context, holds ...Kept) context.Context {
	return client.Keeping(ctx, client.Each(holds, func(k Kept) client.Kept { return client.Kept(k) }))
}

// Keeps returns what a context says that its caller keeps, the innermost hold last.
func Keeps(ctx context.Context) (holds []Kept) {
	return client.Each(client.Keeps(ctx), func(k client.Kept) Kept { return Kept(k) })
}

// DeadlockError says which cycle a call would have completed.
type DeadlockError struct {
	// Name is that of the lock, or of the election, that the call waited for.
	Name     string
	Election bool
	// Cycle has this call first, then who keeps what it waits for, and so on. The last
	// one waits for what this caller keeps. There are Length in all; this slice has the
	// first 64. It is empty if the answer had to be asked for twice; the error then tells
	// in words.
	Cycle  []Dependency
	Length int
	text   string
}

// Dependency is one who waits for a hold.
type Dependency struct {
	Waiter   Waiter
	Election bool // Name is that of an election
	Name     string
	Holder   Holder
}

func (e *DeadlockError) Error() string {
	class := "lock"
	if e.Election {
		class = "election"
	}
	return fmt.Sprintf("conclave: %s %q: %s", class, e.Name, e.text)
}

// Is makes errors.Is(err, ErrDeadlock) true.
func (e *DeadlockError) Is(target error) bool { return target == ErrDeadlock }

func deadlockOf(a *api.Acquire, r *api.Reply) error {
	return &DeadlockError{
		Name: a.GetName(), Election: a.GetClass() == api.Class_CLASS_ELECTION, Length: int(r.GetCycleLength()), text: r.GetMessage(),
		Cycle: client.Each(r.GetCycle(), func(d *api.Dependency) Dependency {
			return Dependency{waiterOf(d.GetWaiter()), d.GetClass() == api.Class_CLASS_ELECTION, d.GetName(), holderOf(d.GetHolder())}
		}),
	}
}

// Waiting is one who waits and keeps something meanwhile.
type Waiting struct {
	Waiter Waiter
	// What it waits for, and who holds that: the first 16 of HolderCount.
	Election    bool
	Name        string
	Holders     []Holder
	HolderCount int
	// Keeps is what it keeps, without the identity of the cluster. Some of it may have
	// ended since.
	Keeps []Kept
}

// Waits returns who waits and keeps something meanwhile, at most 1,000, and whether
// there are more. These are the chains that deadlocks are made of, but none of them is
// one: the servers refuse the call that would complete it. Without a deadline in ctx it
// tries for 10 seconds.
func (c *Client) Waits(ctx context.Context) (waits []Waiting, more bool, err error) {
	answer, err := call(ctx, c, "waits", api.ConclaveClient.Waits, &api.WaitsRequest{})
	return client.Each(answer.GetWaits(), waitingOf), answer.GetMore(), err
}

func waitingOf(w *api.Waiting) Waiting {
	return Waiting{
		Waiter: waiterOf(w.GetWaiter()), Election: w.GetClass() == api.Class_CLASS_ELECTION, Name: w.GetName(),
		Holders: client.Each(w.GetHolders(), holderOf), HolderCount: int(w.GetHolderCount()),
		Keeps: client.Each(w.GetKeeps(), func(k *api.Kept) Kept {
			return Kept{Election: k.GetClass() == api.Class_CLASS_ELECTION, Name: k.GetName(), Fence: k.GetFence()}
		}),
	}
}
