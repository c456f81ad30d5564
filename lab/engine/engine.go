package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/conclave-io/conclave/process"
)

// slice is how long an engine works on a request before others get in.
const slice = 12 * time.Millisecond

// Options say where an engine runs.
type Options struct {
	Build  string // version of the program
	Host   string // wasm or native
	Cores  int
	Memory uint64 // bytes that a run may take; 0: no limit
	// Context ends searches, which a request cannot end; nil: nothing does.
	Context context.Context
	// Send takes the frames of answers, in order. It is called by Receive and Work,
	// during a search also from another goroutine, while Receive waits for that.
	Send func(Frame)
}

// Engine answers requests. It is used by one goroutine.
type Engine struct {
	options Options
	runs    map[int]*run
	last    int // the number of the last run
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

// job is a request that is being worked on.
type job struct {
	request *Request
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	began   time.Time // its present slice
	told    time.Time // when it last said how far it has come
	run     *run      // that is closed if the job is cancelled
}

// over reports whether the present slice is over.
func (j *job) over() bool { return time.Since(j.began) >= slice }

// pause lets others get in. It returns false if the job was cancelled.
func (j *job) pause() bool { return j.yield(struct{}{}) }

// Receive takes a request. Short ones are answered at once, long ones wait for Work.
func (e *Engine) Receive(r *Request) {
	call, known := calls[r.Call]
	switch {
	case !known:
		e.fail(r, &Problem{Code: CodeRequest, Message: fmt.Sprintf("call: %q: not in this build; there are %v", r.Call, callNames)})
	case call.answer != nil:
		e.answer(r, call.answer)
	default:
		e.start(r, call.work)
	}
}

// answer gives a short answer.
func (e *Engine) answer(r *Request, call func(e *Engine, r *Request) (Frame, error)) {
	defer e.recoverBug(r)
	f, err := call(e, r)
	if err != nil {
		e.fail(r, err)
		return
	}
	f.ID, f.Type = r.ID, TypeResult
	e.options.Send(f)
}

// start makes a job of a request.
func (e *Engine) start(r *Request, work func(e *Engine, j *job) (Frame, error)) {
	j := &job{request: r, told: time.Now()}
	j.next, j.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer e.recoverBug(r)
		j.yield = yield
		f, err := work(e, j)
		if err != nil {
			e.fail(r, err)
			return
		}
		f.ID, f.Type = r.ID, TypeResult
		e.options.Send(f)
	})
	e.jobs = append(e.jobs, j)
}

// Work does a slice of the next long request, and reports whether there is more to do.
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

// Close ends all requests without an answer.
func (e *Engine) Close() {
	for _, j := range e.jobs {
		j.stop()
	}
	e.jobs, e.runs = nil, map[int]*run{}
}

// errCancelled is that of a job whose pause returned false.
var errCancelled = &Problem{Code: CodeCancelled, Message: "the request was cancelled"}

func (e *Engine) cancel(r *Request) (Frame, error) {
	if r.Request == nil {
		return Frame{}, &Problem{Code: CodeRequest, Message: "request: missing; name the request to cancel"}
	}
	i := slices.IndexFunc(e.jobs, func(j *job) bool { return j.request.ID == *r.Request })
	if i >= 0 {
		j := e.jobs[i]
		e.jobs = slices.Delete(e.jobs, i, i+1)
		j.stop() // its pause returns false, and it answers with the error
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

// recoverBug answers with the panic of a request. The runs of others stay.
func (e *Engine) recoverBug(r *Request) {
	if broken := recover(); broken != nil {
		e.fail(r, &Problem{Code: CodeInternal, Message: fmt.Sprint(broken)})
	}
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// named is a call that an engine answers at once, or works on.
type named struct {
	answer func(e *Engine, r *Request) (Frame, error)
	work   func(e *Engine, j *job) (Frame, error)
}

// calls are filled in by init: the calls name them.
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
		err = &Problem{Code: CodeRequest, Message: fmt.Sprintf("at: %d: must be between 0 and %d", r.At, run.journal.Len())}
	}
	return run, err
}

// stretch returns the records from..to of a request in a run: all, where they are absent.
func stretch(r *Request, run *run) (from, to int, err error) {
	from, to = max(1, r.From), r.To
	if r.To == 0 {
		to = run.journal.Len()
	}
	if r.From < 0 || to > run.journal.Len() || from > to+1 {
		return 0, 0, &Problem{Code: CodeRequest, Message: fmt.Sprintf("from, to: %d, %d: must be within the records 1 to %d", r.From, r.To, run.journal.Len())}
	}
	return from, to, nil
}

func rank(p process.ID) *int {
	if p == process.None {
		return nil
	}
	r := int(p)
	return &r
}
