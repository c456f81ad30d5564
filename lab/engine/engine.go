package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/conclave-io/conclave/process"
)

// slice is how long an engine works on a request before it may answer others.
const slice = 12 * time.Millisecond

// Options describe the environment of an engine.
type Options struct {
	Build  string // version of the program
	Host   string // wasm or native
	Cores  int
	Memory uint64 // maximum memory of a run, in bytes; 0: no limit
	// Room reports whether the process may allocate further bytes. Nil: always.
	Room func(bytes int64) bool
	// Context ends searches, which a cancel request cannot end. If it is nil, nothing ends them.
	Context context.Context
	// Send receives the frames of answers, in order. Receive and Work call it. During a search,
	// another goroutine may call it while Receive waits for the search.
	Send func(Frame)
}

// Engine answers requests. Only one goroutine may use it.
type Engine struct {
	options Options
	runs    map[int]*run
	last    int // the number of the newest run
	jobs    []*job
	catalog *Catalog
}

// New returns an engine without runs.
func New(o Options) *Engine {
	if o.Context == nil {
		o.Context = context.Background()
	}
	return &Engine{options: o, runs: map[int]*run{}}
}

// job is a long request in progress.
type job struct {
	request *Request
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	began   time.Time // when its current slice began
	told    time.Time // when it last reported its progress
	run     *run      // closed if the job is cancelled
}

// over reports whether the current slice has used its time.
func (j *job) over() bool { return time.Since(j.began) >= slice }

// pause ends the slice, so that the engine can answer other requests. It returns false if the job
// was cancelled.
func (j *job) pause() bool { return j.yield(struct{}{}) }

// Receive accepts a request. It answers a short request at once. A long one waits for Work.
func (e *Engine) Receive(r *Request) {
	call, known := calls[r.Call]
	switch {
	case !known:
		e.fail(r, badRequest("call: %q: not in this build; there are %v", r.Call, callNames))
	case call.answer != nil:
		e.answer(r, func() (Frame, error) { return call.answer(e, r) })
	default:
		e.start(r, call.work)
	}
}

// answer answers a request with what its call returns.
func (e *Engine) answer(r *Request, call func() (Frame, error)) {
	defer e.recoverBug(r)
	f, err := call()
	if err != nil {
		e.fail(r, err)
		return
	}
	f.ID, f.Type = r.ID, TypeResult
	e.options.Send(f)
}

// start creates a job for a request.
func (e *Engine) start(r *Request, work func(e *Engine, j *job) (Frame, error)) {
	j := &job{request: r, told: time.Now()}
	j.next, j.stop = iter.Pull(func(yield func(struct{}) bool) {
		j.yield = yield
		e.answer(r, func() (Frame, error) { return work(e, j) })
	})
	e.jobs = append(e.jobs, j)
}

// Work does one slice of the next long request, and reports whether there is more work.
func (e *Engine) Work() bool {
	if len(e.jobs) == 0 {
		return false
	}
	j := e.jobs[0]
	e.jobs = e.jobs[1:]
	j.began = time.Now()
	if _, more := j.next(); more {
		e.jobs = append(e.jobs, j)
	}
	return len(e.jobs) > 0
}

// Close ends all requests and sends no answers to them.
func (e *Engine) Close() {
	for _, j := range e.jobs {
		j.stop()
	}
	e.jobs, e.runs = nil, map[int]*run{}
}

// errCancelled is the error of a job whose pause returned false.
var errCancelled = &Problem{Code: CodeCancelled, Message: "the request was cancelled"}

func (e *Engine) cancel(r *Request) (Frame, error) {
	if r.Request == nil {
		return Frame{}, badRequest("request: missing; name the request to cancel")
	}
	i := slices.IndexFunc(e.jobs, func(j *job) bool { return j.request.ID == *r.Request })
	if i >= 0 {
		j := e.jobs[i]
		e.jobs = slices.Delete(e.jobs, i, i+1)
		j.stop() // pause returns false, and the job answers with the error
		if j.run != nil {
			delete(e.runs, j.run.number)
		}
	}
	return Frame{Head: Done{}}, nil
}

func (e *Engine) fail(r *Request, err error) {
	problem, is := err.(*Problem)
	if !is {
		problem = &Problem{Code: CodeInternal, Message: err.Error()}
	}
	e.options.Send(Frame{ID: r.ID, Type: TypeError, Head: problem})
}

// recoverBug answers a request that panicked with the panic. Other runs are not affected.
func (e *Engine) recoverBug(r *Request) {
	if broken := recover(); broken != nil {
		e.fail(r, &Problem{Code: CodeInternal, Message: fmt.Sprint(broken)})
	}
}

// badRequest is the problem of a request that is wrong, and tooLarge that of one that asks for
// more than the engine allows.
func badRequest(format string, args ...any) *Problem {
	return &Problem{Code: CodeRequest, Message: fmt.Sprintf(format, args...)}
}

func tooLarge(format string, args ...any) *Problem {
	return &Problem{Code: CodeLimit, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// named is the function of a call. The engine answers the call at once, or makes a job of it.
type named struct {
	answer func(e *Engine, r *Request) (Frame, error)
	work   func(e *Engine, j *job) (Frame, error)
}

// calls is set by init, because the functions of the calls use it.
var calls map[string]named

var callNames = []string{
	CallHello, CallCatalog, CallParse, CallOpen, CallMore, CallDescribe, CallStates, CallFind, CallHash, CallExport, CallCheck, CallAudit, CallMeasure, CallEdit, CallTurns, CallCourse, CallGrade, CallClose, CallCancel,
}

func init() {
	calls = map[string]named{
		CallHello:    {answer: (*Engine).hello},
		CallCatalog:  {answer: (*Engine).all},
		CallParse:    {answer: (*Engine).parse},
		CallOpen:     {work: (*Engine).open},
		CallMore:     {work: (*Engine).more},
		CallDescribe: {answer: (*Engine).describe},
		CallStates:   {answer: (*Engine).states},
		CallFind:     {work: (*Engine).find},
		CallHash:     {answer: (*Engine).hash},
		CallExport:   {work: (*Engine).export},
		CallCheck:    {answer: (*Engine).check},
		CallAudit:    {answer: (*Engine).audit},
		CallMeasure:  {answer: (*Engine).measure},
		CallEdit:     {answer: (*Engine).edit},
		CallTurns:    {work: (*Engine).turns},
		CallCourse:   {answer: (*Engine).lessons},
		CallGrade:    {work: (*Engine).grade},
		CallClose:    {answer: (*Engine).close},
		CallCancel:   {answer: (*Engine).cancel},
	}
}

// run returns the run that a request names.
func (e *Engine) run(r *Request) (*run, error) {
	if run := e.runs[r.Run]; run != nil {
		return run, nil
	}
	return nil, &Problem{Code: CodeRun, Message: fmt.Sprintf("run: %d: no such run; it may have been closed", r.Run)}
}

// runAt returns the run that a request names, if it has the record At.
func (e *Engine) runAt(r *Request) (*run, error) {
	run, err := e.run(r)
	if err == nil && (r.At < 0 || r.At > run.journal.Len()) {
		err = badRequest("at: %d: must be between 0 and %d", r.At, run.journal.Len())
	}
	return run, err
}

// stretch returns the run that a request names, and the range from..to of its records. If they are
// absent, the range is the whole run.
func (e *Engine) stretch(r *Request) (run *run, from, to int, err error) {
	if run, err = e.run(r); err != nil {
		return nil, 0, 0, err
	}
	from, to = max(1, r.From), r.To
	if r.To == 0 {
		to = run.journal.Len()
	}
	if r.From < 0 || to > run.journal.Len() || from > to+1 {
		return nil, 0, 0, badRequest("from, to: %d, %d: must be within the records 1 to %d", r.From, r.To, run.journal.Len())
	}
	return run, from, to, nil
}

func rank(p process.ID) *int {
	if p == process.None {
		return nil
	}
	r := int(p)
	return &r
}
