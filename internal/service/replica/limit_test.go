package replica

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry"
)

func election(n byte, sequence uint64, value int) registry.Command {
	return registry.Command{
		Op: registry.OpAcquire, Session: id(n), Sequence: sequence, Low: sequence, Class: registry.Election,
		Name: fmt.Sprint("e", n, "-", sequence), Value: strings.Repeat("v", value),
	}
}

// At its limit, the state does not grow, whoever asks. Requests that free space or keep
// sessions alive are served. A member that fell behind meanwhile gets its snapshot.
func TestStateLimit(t *testing.T) {
	const limit = 1 << 20
	c := newCluster(t, 3, 41)
	c.cfg = Config{StateLimit: limit, SnapshotBytes: 200_000, TailEntries: 5}
	c.start()
	c.want(c.do(open(1, 1, 600_000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 600_000*ms)), registry.OK)
	c.want(c.do(acquire(2, 2, "mine")), registry.OK)
	leader := c.await()
	lagging := c.servers[leader.id%3+1]
	c.crash(lagging)
	sequence, refusal := uint64(1), registry.Result{}
	for refusal.Code == 0 {
		if sequence++; sequence > 100 {
			t.Fatal("100 values of 64 KiB are taken, the limit is 1 MiB")
		}
		if got := c.do(election(1, sequence, registry.MaxValue)); got.Code != registry.OK {
			refusal = c.want(got, registry.StateLimit)
		}
	}
	if want := "state limit: 1 MiB reached: release locks, close sessions, or raise --state-limit"; refusal.Message != want {
		t.Errorf("refused with %q, want %q", refusal.Message, want)
	}
	next := sequence
	value := strings.Repeat("v", registry.MaxValue)
	c.want(c.do(registry.Command{Op: registry.OpUpdate, Session: id(1), Sequence: next + 1, Low: next, Hold: 2, Value: value}), registry.OK) // no larger
	c.want(c.do(renew(2, 3)), registry.OK)
	c.want(c.do(open(2, 4, 600_000*ms)), registry.OK)            // it is open
	c.want(c.do(election(1, 2, registry.MaxValue)), registry.OK) // it is led, and asks again
	for n := byte(10); ; n++ {
		if n == 255 {
			break
		}
		if got := c.do(open(n, 1, 600_000*ms)); got.Code == registry.StateLimit {
			break
		}
		for i := uint64(2); c.do(acquire(n, i, strings.Repeat("n", 500)+fmt.Sprint(n, i))).Code == registry.OK; i++ {
		}
	}
	if got := leader.replica.Registry().Size(); got > limit {
		t.Errorf("the state has %d bytes, the limit is %d", got, limit)
	}
	c.want(c.do(registry.Command{Op: registry.OpCancel, Session: id(2), Sequence: 5, Hold: 99}), registry.OK)
	c.restart(lagging)
	c.run(5000 * ms)
	c.same()
	c.want(c.do(release(2, 6, 2)), registry.OK)
	c.want(c.do(registry.Command{Op: registry.OpClose, Session: id(1), Sequence: next + 2}), registry.OK)
	c.want(c.do(election(2, 7, registry.MaxValue)), registry.OK)
}

// What waits for the log counts: a burst does not get past the limit.
func TestStateLimitCountsWhatIsOnItsWay(t *testing.T) {
	c := newCluster(t, 3, 42)
	c.cfg = Config{StateLimit: 1 << 20}
	c.start()
	c.want(c.do(open(1, 1, 600_000*ms)), registry.OK)
	leader := c.await()
	var burst []registry.Command
	for sequence := uint64(2); sequence < 102; sequence++ {
		burst = append(burst, election(1, sequence, registry.MaxValue))
	}
	leader.replica.Submit(c.now, 1, burst)
	c.run(1000 * ms)
	codes := make(map[registry.Code]int)
	for _, r := range c.replies {
		codes[r.Result.Code]++
	}
	if size := leader.replica.Registry().Size(); codes[registry.OK] != 15 || codes[registry.StateLimit] != 85 || size > 1<<20 {
		t.Errorf("codes %v, %d bytes: want 15 of 64 KiB taken", codes, size)
	}
	if leader.replica.proposed != 0 || leader.replica.pending.bytes != 0 {
		t.Errorf("%d bytes are said to be in flight, %d to wait", leader.replica.proposed, leader.replica.pending.bytes)
	}
}
