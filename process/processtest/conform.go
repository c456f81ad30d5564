package processtest

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Conform checks that an algorithm keeps the contract of package process:
//
//   - the Spec is complete and consistent, and its defaults are valid;
//   - every field of the machine's struct is either configuration, which stands
//     first and never changes, or named by Fields;
//   - a machine that is encoded and decoded equals the original, and both do the
//     same on the same event and choices;
//   - a machine keeps nothing of an event that it was lent;
//   - messages have declared types and only declared fields, and survive the
//     codec; timers and rules are declared;
//   - if the Spec claims mutual exclusion, growing fences or strong accuracy, no
//     run breaks them, and none breaks its invariant; if it claims progress, everyone
//     who waits enters when a run calms down; if it claims that elections terminate,
//     everyone then follows the same live leader.
//
// In runs without faults, machines that are idle (see process.Idler) are replaced by
// new ones now and then, with Bases that differ.
//
// The machines are driven over random schedules of 1 to 4 processes, for every
// combination of named option values, with and without faults of the kinds that
// the Spec says it survives. If it needs synchrony, messages and timers keep their
// bounds. The schedules are the same in every run.
func Conform(t *testing.T, spec *process.Spec) {
	t.Helper()
	most := int64(schedules)
	if spec.Layers != nil {
		most = fewSchedules
	}
	conform(t, spec, most)
}

// ConformBriefly is Conform with a fifth of the schedules, for a Spec that differs little from one
// that conforms.
func ConformBriefly(t *testing.T, spec *process.Spec) {
	t.Helper()
	conform(t, spec, fewSchedules)
}

func conform(t *testing.T, spec *process.Spec, most int64) {
	t.Helper()
	t.Run("declarations", func(t *testing.T) {
		for _, err := range checkSpec(spec) {
			t.Error(err)
		}
	})
	for _, options := range spec.Combinations() {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%v/n=%d", optionsText(options), n), func(t *testing.T) {
				conformRuns(t, spec, options, n, most)
			})
		}
	}
}

// The number of schedules per configuration, and of actions in each. A stack has
// many configurations, and layers that conform by themselves.
const (
	schedules    = 30
	fewSchedules = 6
	actions      = 250
)

func conformRuns(t *testing.T, spec *process.Spec, options []process.OptionValue, n int, most int64) {
	for seed := range most {
		if err := schedule(spec, options, n, seed); err != nil {
			t.Fatal(err)
		}
	}
}

// schedule is the schedule of a seed.
func schedule(spec *process.Spec, options []process.OptionValue, n int, seed int64) error {
	faults := seed%2 == 1
	r, err := newRun(spec, options, n, seed, faults)
	if err == nil {
		err = r.drive()
	}
	if err != nil {
		return fmt.Errorf("seed %d, faults %v: %w", seed, faults, err)
	}
	return nil
}

func optionsText(options []process.OptionValue) string {
	text := "default"
	for i, o := range options {
		if i == 0 {
			text = ""
		}
		text += o.Name + "=" + o.Value
	}
	return text
}

// run is one random schedule.
type run struct {
	w       *world
	rng     *rand.Rand
	faults  bool
	faulty  bool // something has gone wrong; see process.Global
	round   uint64
	highest process.Fence
	entered process.ID // the latest
	calls   bool       // somebody asked for an election
	chosen  []int      // the choices of the present step, for the twin
	twinFx  process.Effects
	shapes  map[process.ID][]string
	leaders map[process.Term]process.ID // who leads, as somebody said
	agreed  *property.Decisions
	votes   *property.Votes
	hasty   bool // a timer ran out, perhaps too early
	steps   int
	special process.ID // the coordinator, or who has the token or is sent it; or None
}

func newRun(spec *process.Spec, options []process.OptionValue, n int, seed int64, faults bool) (*run, error) {
	rng := rand.New(rand.NewSource(seed))
	c := &process.Config{N: n, Options: options, Topology: topology(spec, n)}
	c.Topology.Coordinator = process.ID(rng.Intn(n))
	w, err := newWorld(spec, c)
	if err != nil {
		return nil, err
	}
	r := &run{w: w, agreed: property.NewDecisions(spec, c), votes: property.NewVotes(c), rng: rng, faults: faults, special: firstSpecial(spec, c), shapes: map[process.ID][]string{}, leaders: map[process.Term]process.ID{}}
	w.take = r.take
	if spec.Needs.Synchrony {
		w.draw = func(lo, hi process.Duration) process.Duration {
			return lo + process.Duration(rng.Int63n(int64(hi-lo)+1))
		}
	}
	return r, nil
}

// topology gives an algorithm what it says it needs.
func topology(spec *process.Spec, n int) process.Topology {
	var t process.Topology
	switch spec.Needs.Topology {
	case process.Tree:
		t.Parent = process.BinaryTree(n)
	case process.Quorums:
		t.Quorums = process.VotingSets(n)
	}
	return t
}

// drive starts the processes, takes random actions and lets them calm down. An
// error ends with what happened last.
func (r *run) drive() error {
	err := errors.Join(r.w.start(), r.proposeAll(), r.checkInvariant())
	for i := 0; i < actions && err == nil; i++ {
		err = errors.Join(r.act(), r.checkClients(), r.checkInvariant())
	}
	if err == nil {
		err = errors.Join(r.drain(), r.conclude(), r.concludeAgreement(), r.concludeTransaction())
	}
	if err == nil {
		return nil
	}
	log := r.w.read()
	return fmt.Errorf("%w\n%s", err, log[max(0, len(log)-4000):])
}

// act takes one random action. Deliveries are the most frequent, so that runs
// get somewhere.
func (r *run) act() error {
	p := r.w.procs[r.rng.Intn(len(r.w.procs))]
	switch dice := r.rng.Intn(20); {
	case dice < 11 && len(r.w.flights) > 0:
		return r.deliver()
	case (dice < 11 || dice == 16 || dice == 17) && r.w.spec.Needs.Synchrony:
		return r.elapse()
	case dice < 16:
		return r.client(p)
	case dice < 18 && len(p.timers) > 0:
		return r.w.fire(p, p.timers[r.rng.Intn(len(p.timers))].timerKey)
	case dice == 18 && r.faults:
		return r.fault(p)
	case dice == 18:
		_, err := r.w.forget(p, uint64(1000*r.rng.Intn(2)))
		return err
	}
	return nil
}

// elapse lets time run on to the next deadline. An algorithm that needs synchrony
// may rely on it: no message takes longer than one delay, and timers run out in
// the order of their deadlines.
func (r *run) elapse() error {
	_, err := r.w.pass(endOfTime)
	return err
}

const endOfTime = process.Duration(1) << 62

// deliver hands over a random message; the oldest of its link if the algorithm
// needs that; now and then twice if it does not mind.
func (r *run) deliver() error {
	i := r.rng.Intn(len(r.w.flights))
	needs := r.w.spec.Needs
	if needs.FIFO || needs.Causal {
		i = r.oldest(i)
	}
	if r.faults && r.survives(process.Duplication) && !needs.NoDuplication && r.rng.Intn(8) == 0 {
		r.faulty = true
		r.w.flights = append(r.w.flights, r.w.flights[i])
	}
	return r.w.deliver(i)
}

// oldest returns the first message in flight on the link of message i; if the
// algorithm needs causal order the first in flight at all.
func (r *run) oldest(i int) int {
	if r.w.spec.Needs.Causal {
		return 0
	}
	for j, f := range r.w.flights {
		if f.msg.From == r.w.flights[i].msg.From && f.msg.To == r.w.flights[i].msg.To {
			return j
		}
	}
	return i
}

func (r *run) survives(fault process.Fault) bool {
	return r.w.spec.Survives(fault, r.w.spec.Mode(r.w.c))
}

// client takes a random step of the client that the algorithm serves.
func (r *run) client(p *proc) error {
	if p.down {
		return nil
	}
	if r.w.spec.Has(process.GlobalState) && r.rng.Intn(4) == 0 {
		return r.give(p, process.Event{Kind: process.Record})
	}
	value := int64(r.rng.Intn(100))
	switch r.w.spec.Family {
	case process.Mutex, process.Deadlock:
		return r.mutexClient(p)
	case process.Election:
		return r.give(p, process.Event{Kind: process.Campaign})
	case process.Agreement:
		return r.propose(p, value)
	case process.Transaction:
		return r.vote(p)
	default:
		return r.give(p, process.Event{Kind: process.Propose, Value: value})
	}
}

func (r *run) mutexClient(p *proc) error {
	command := "request"
	switch {
	case p.inside:
		command = "release"
	case p.waiting:
		if !r.w.spec.Cancels || r.rng.Intn(4) > 0 {
			return nil
		}
		command = "cancel"
	}
	if err := p.allows(command); err != nil {
		return err
	}
	return r.give(p, process.Event{Kind: clientKinds[command]})
}

func (r *run) give(p *proc, ev process.Event) error {
	return r.w.happen(p, r.w.name(p.id)+" "+ev.Kind.String(), &ev)
}
