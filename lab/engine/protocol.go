package engine

import (
	"encoding/json"
	"fmt"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/describe"
	"github.com/conclave-io/conclave/lab/trace"
)

// Protocol is the version of the protocol. A page and an engine must have the same version.
const Protocol = 1

// Limits of the protocol.
const (
	DefaultRecords  = 200_000   // number of records after which a run waits for More
	MostRecords     = 1_000_000 // of a run
	MostDescribed   = 500       // records of one describe
	MostFound       = 1_000     // records of one find
	MostProcesses   = 65_534    // the columns hold ranks in 16 bits
	MostDrawn       = 20_000    // records of a picture that is exported
	MostRequestSize = 2 << 20   // bytes of an encoded request
)

// Request is a request of a page. The page chooses the ID, and every frame of the answer has it.
// The constants Call... say which other fields each call reads.
type Request struct {
	ID   uint64 `json:"id"`
	Call string `json:"call"`

	Text    string  `json:"text,omitempty"`
	Name    string  `json:"name,omitempty"`
	Run     int     `json:"run,omitempty"`
	Like    int     `json:"like,omitempty"`
	From    int     `json:"from,omitempty"`
	To      int     `json:"to,omitempty"`
	At      int     `json:"at,omitempty"`
	Records int     `json:"records,omitempty"`
	Ranks   []int   `json:"ranks,omitempty"`
	Query   *Query  `json:"query,omitempty"`
	Format  string  `json:"format,omitempty"`
	Request *uint64 `json:"request,omitempty"`
	Check   *Check  `json:"check,omitempty"`
	Audit   *Audit  `json:"audit,omitempty"`
	Measure *Sizing `json:"measure,omitempty"`
	Edit    *Edit   `json:"edit,omitempty"`

	Challenge string `json:"challenge,omitempty"`
}

// The calls, with the fields of Request that each reads. Fields in brackets may be absent.
const (
	CallHello    = "hello"    // answer: Hello
	CallCatalog  = "catalog"  // answer: Catalog
	CallParse    = "parse"    // Text, [Name]; answer: Run
	CallOpen     = "open"     // Text, [Name], [Records], [Like]; answer: a Run, Chunks, an End
	CallMore     = "more"     // Run, [Records]; answer: Chunks, an End
	CallDescribe = "describe" // Run, From, To: records, both included; answer: Described
	CallStates   = "states"   // Run, At: after this record, 0 is before the first; [Ranks]: of these processes; answer: States
	CallFind     = "find"     // Run, Query, [From], [To], [Records]; answer: Found
	CallHash     = "hash"     // Run, At; answer: Hash
	CallExport   = "export"   // Run, Format, [From], [To]; answer: Exported, the file is the body
	CallCheck    = "check"    // Check; answer: CheckProgress, Checked
	CallAudit    = "audit"    // Audit; answer: Audited
	CallMeasure  = "measure"  // Measure; answer: Measured
	CallEdit     = "edit"     // Run, At, Edit, Text, [Name]: the scenario of the run; answer: Edited
	CallTurns    = "turns"    // Run, At: the events that are possible after this record; answer: Turns
	CallCourse   = "course"   // answer: Course
	CallGrade    = "grade"    // Challenge, Text, [Name]: the solution; answer: Graded
	CallClose    = "close"    // Run; answer: Done
	CallCancel   = "cancel"   // Request; answer: Done
)

// The types of frames. The last frame of an answer is a result or an error.
const (
	TypeRun      = "run"
	TypeChunk    = "chunk"
	TypeProgress = "progress"
	TypeResult   = "result"
	TypeError    = "error"
)

// Frame is one part of an answer. Its header is a flat object with the fields id and type, and with
// the fields of Head.
type Frame struct {
	ID   uint64
	Type string
	Head any    // Hello, Catalog, Run, Chunk, ...; nil: only id and type
	Body []byte // see Chunk and Exported; nil for all others
}

// Query describes the records that find looks for. A record must match all given fields.
type Query struct {
	Rule    string `json:"rule,omitempty"`    // that fired
	Message string `json:"message,omitempty"` // the name of a message that the record delivers, drops or duplicates
	Kind    string `json:"kind,omitempty"`
	Rank    *int   `json:"rank,omitempty"`
	Field   string `json:"field,omitempty"` // that the record changed
	Text    string `json:"text,omitempty"`  // a part of the record as text, in any case
	Flags   int    `json:"flags,omitempty"` // all of these, see journal.Flags
	Last    bool   `json:"last,omitempty"`  // look from To back to From
}

// Problem is the reason for which a request failed.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"` // of the scenario, from 1
	// Suggestion is a correct word for the wrong one.
	Suggestion string `json:"suggestion,omitempty"`
}

// The codes of problems.
const (
	CodeRequest   = "request"   // no such call, or a field is missing or wrong
	CodeScenario  = "scenario"  // the text is not a valid scenario; Line has the line of the mistake
	CodeRun       = "run"       // no such run, or it was closed
	CodeLimit     = "limit"     // larger than this engine allows
	CodeCancelled = "cancelled" // cancelled by the call cancel
	CodeInternal  = "internal"  // a bug of the engine
)

// Hello describes the engine.
type Hello struct {
	Protocol int      `json:"protocol"`
	Build    string   `json:"build"`  // version of the program
	Host     string   `json:"host"`   // wasm or native
	Cores    int      `json:"cores"`  // number that this engine may use
	Memory   uint64   `json:"memory"` // maximum memory of a run, in bytes
	Calls    []string `json:"calls"`
	Kinds    []string `json:"kinds"` // of records, by their number in the columns; 0 means no kind
	Formats  []string `json:"formats"`
}

// Catalog lists everything that the engine can run.
type Catalog struct {
	Algorithms []describe.View `json:"algorithms"`
	Broken     []Broken        `json:"broken"`
	Properties []string        `json:"properties"`
	Faults     []string        `json:"faults"`
	Scenarios  []Scenario      `json:"scenarios"`
	// Audited lists the algorithms that audit accepts, and Measured those that measure accepts.
	Audited     []string     `json:"audited"`
	Assumptions []Assumption `json:"assumptions"`
	Measured    []string     `json:"measured"`
}

// Broken is a variant of an algorithm with a mistake.
type Broken struct {
	Name     string `json:"name"`
	Of       string `json:"of"`
	Mistake  string `json:"mistake"`
	Tempting string `json:"tempting"`
	Wrong    string `json:"wrong"`
	Breaks   string `json:"breaks"`
	Command  string `json:"command"` // command that shows the mistake
	Check    *Check `json:"check"`   // search that finds the mistake; null: only a scenario shows it
}

// Scenario is a file that comes with the engine.
type Scenario struct {
	ID        string `json:"id"` // mutex/lamport
	Algorithm string `json:"algorithm"`
	Family    string `json:"family"`
	N         int    `json:"n"`
	About     string `json:"about"`
	Objective string `json:"objective,omitempty"` // what to look for
	Violation string `json:"violation,omitempty"` // violation that the file expects
	Text      string `json:"text"`
}

// Run describes the run of a scenario. In an answer to parse its number is 0.
type Run struct {
	Run      int          `json:"run,omitempty"`
	Name     string       `json:"name,omitempty"`
	About    string       `json:"about,omitempty"`
	Header   trace.Header `json:"header"` // algorithm, labels by rank, options, seed, traitors
	D        int64        `json:"d"`      // nanoseconds
	Messages []MessageRef `json:"messages"`
	Rules    []RuleRef    `json:"rules"`
	Fields   []FieldRef   `json:"fields,omitempty"` // what the fields of the states mean, if the algorithm says it
	Judged   []string     `json:"judged"`           // the properties that the run checks
	Topology Topology     `json:"topology"`         // by rank
}

// MessageRef is a message type. The columns contain its index in Run.Messages, from 1.
type MessageRef struct {
	Name  string   `json:"name"`
	Class string   `json:"class"`
	Layer int      `json:"layer"`
	Uses  []string `json:"uses"` // the symbols of its fields
	// Part is asks or answers: the sender waits for the receiver from then on, or the receiver no
	// longer waits for the sender. It is absent if neither, or if the algorithm does not say it.
	Part string `json:"part,omitempty"`
}

// FieldRef is a field of the states, with its meaning.
type FieldRef struct {
	Name string `json:"name"` // as in FieldState
	Text string `json:"text"`
}

// RuleRef is a rule. Its index in Run.Rules, from 0, is the number of its bit in the columns.
type RuleRef struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Layer int    `json:"layer"`
}

// Topology has the parts of the topology that the algorithm uses. Other fields are absent.
type Topology struct {
	Kind        string  `json:"kind"` // complete, ring, tree, quorums, centre, commander
	Coordinator *int    `json:"coordinator,omitempty"`
	Successor   []int   `json:"successor,omitempty"`
	Parent      []int   `json:"parent,omitempty"` // -1: none
	Quorums     [][]int `json:"quorums,omitempty"`
}

// Chunk is a range of records of a run, as columns in the body. All numbers are little-endian. Each
// column is a separate array, so the page can view the body as typed arrays. The columns have this
// order, for Count records, Flights.Count flights and Ends ends:
//
//	float64  time of each record, nanoseconds
//	uint32   cause: the number of the record that led to it, or 0
//	uint32   rules that fired, bits 0 to 31
//	uint32   rules that fired, bits 32 to 63
//	uint32   row in the logical picture, from 0
//	uint32   index at its process, from 1; 0: it is at no process
//	uint16   process, a rank
//	uint16   peer, a rank, or 65535
//	uint16   flags, see journal.Flags
//	uint8    kind, see Hello.Kinds
//	uint8    type of its message, see Run.Messages; 0: none
//
//	uint32   sender: the record that sent the message, or 0 if no record did
//	uint32   end: the record that ended the flight, or 0 if that is not known yet
//	uint16   receiver, a rank
//	uint8    type of the message
//	uint8    fate, see journal.Fate
//
//	uint32   flight: the number of a flight of an earlier chunk, from 0
//	uint32   end: the record that ended the flight
//
// Records are numbered from 1. Flights are numbered from 0, in the order in which they became
// known.
type Chunk struct {
	Run  int `json:"run"`
	From int `json:"from"` // the number of the first record
	// Same is the number of records at the start that equal those of the run Like. Only the first
	// chunk of an open with Like has it. The chunks contain only later records. The page keeps the
	// equal records and the first Flights.From flights. It forgets the ends of flights at records
	// after Same.
	Same    int         `json:"same,omitempty"`
	Count   int         `json:"count"`
	Flights FlightsPart `json:"flights"`
	Ends    int         `json:"ends"`
}

// FlightsPart describes the flights in a chunk.
type FlightsPart struct {
	From  int `json:"from"`
	Count int `json:"count"`
}

// End is the result of open and more: the run has ended, or has reached its limit.
type End struct {
	Run        int              `json:"run"`
	Records    int              `json:"records"` // so far
	Complete   bool             `json:"complete"`
	Reason     string           `json:"reason"` // quiet, limit, stalled, violated, held; records, memory: the run is not complete
	Time       int64            `json:"time"`   // nanoseconds
	Hash       string           `json:"hash"`   // SHA-256 of the journal
	Met        bool             `json:"met"`    // whether the run meets all expectations of the scenario
	Unmet      []string         `json:"unmet"`
	Violations []ViolationFound `json:"violations"`
	Entries    int              `json:"entries"` // completed
	Waiting    int              `json:"waiting"`
	Inside     int              `json:"inside"`
	Sent       []Sent           `json:"sent"`
	Wait       *Spread          `json:"wait,omitempty"` // from request to entry, in D
}

// ViolationFound is a violated property.
type ViolationFound struct {
	Property string `json:"property"`
	Record   int    `json:"record"`
	Rank     *int   `json:"rank,omitempty"`
	Text     string `json:"text"`
}

// Sent is how many messages of a type were sent in the measured window.
type Sent struct {
	Name  string `json:"name"`
	Layer int    `json:"layer"`
	Class string `json:"class"`
	Count uint64 `json:"count"`
}

// Spread is a distribution.
type Spread struct {
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Described is the answer to the call describe.
type Described struct {
	Run       int            `json:"run"`
	From      int            `json:"from"`
	Records   []trace.Record `json:"records"`
	Sentences []string       `json:"sentences"` // one for each record
}

// States is the answer to the call states.
type States struct {
	Run       int            `json:"run"`
	At        int            `json:"at"`
	Processes []ProcessState `json:"processes"`
}

// ProcessState is the state of a process after a record.
type ProcessState struct {
	Rank   int          `json:"rank"`
	Record int          `json:"record"` // the last one at this process, or 0
	Client string       `json:"client"` // away, waiting, inside
	Down   bool         `json:"down,omitempty"`
	Paused bool         `json:"paused,omitempty"`
	Fields []FieldState `json:"fields"`
	Timers []TimerState `json:"timers"`
}

// FieldState is one field of a machine.
type FieldState struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Durable bool   `json:"durable,omitempty"`
}

// TimerState is an active timer. It fires between Lo and Hi after the record that started it.
type TimerState struct {
	Name  string `json:"name"`
	Layer int    `json:"layer,omitempty"`
	Armed int    `json:"armed"`
	Lo    int64  `json:"lo"`
	Hi    int64  `json:"hi"`
}

// Found is the answer to the call find.
type Found struct {
	Run     int   `json:"run"`
	Records []int `json:"records"`
	More    bool  `json:"more,omitempty"` // there are more matches
}

// Hash is the answer to the call hash.
type Hash struct {
	Run  int    `json:"run"`
	At   int    `json:"at"`
	Hash string `json:"hash"` // the first 48 bits of SHA-256 of the journal up to this record, in hex
}

// Exported is the answer to the call export. The body is the file.
type Exported struct {
	Run  int    `json:"run"`
	Name string `json:"name"` // suggested file name
	Type string `json:"mime"`
}

// Check is a search of all schedules within bounds, like the one of conclave check. Absent fields
// have the same defaults: no faults, FIFO links, one entry per process.
type Check struct {
	Algorithm  string            `json:"algorithm"`
	N          int               `json:"n"`
	Entries    int               `json:"entries,omitempty"` // absent: 1
	Requesters []int             `json:"requesters,omitempty"`
	Options    map[string]string `json:"options,omitempty"`
	Unordered  bool              `json:"unordered,omitempty"`
	Timers     string            `json:"timers,omitempty"` // as-needed, synchronous, patient, any, never
	Timeouts   int               `json:"timeouts,omitempty"`
	Crashes    int               `json:"crashes,omitempty"`
	Restarts   int               `json:"restarts,omitempty"`
	Drops      int               `json:"drops,omitempty"`
	Duplicates int               `json:"duplicates,omitempty"`
	Reorders   int               `json:"reorders,omitempty"`
	Cancels    int               `json:"cancels,omitempty"`
	Traitors   []int             `json:"traitors,omitempty"` // ranks
	Corrupt    bool              `json:"corrupt,omitempty"`  // begin in every state that a transient fault may leave
	InFlight   int               `json:"inFlight,omitempty"` // messages on each link in those states
	Liveness   bool              `json:"liveness,omitempty"`
	Reduce     bool              `json:"reduce,omitempty"`     // skip schedules that differ only in the order of independent steps
	Properties []string          `json:"properties,omitempty"` // absent: the properties that the algorithm claims
	MaxStates  uint64            `json:"maxStates,omitempty"`
	Memory     int64             `json:"memory,omitempty"` // bytes; absent: at most twice Hello.Memory
}

// CheckProgress reports the progress of a search.
type CheckProgress struct {
	States      uint64  `json:"states"`
	Transitions uint64  `json:"transitions"`
	Depth       int     `json:"depth"`
	Seconds     float64 `json:"seconds"`
}

// Checked is the answer to the call check.
type Checked struct {
	CheckProgress
	Verdict  string       `json:"verdict"`  // proved, violated, bounded
	Sentence string       `json:"sentence"` // the verdict with its bounds
	Bounds   string       `json:"bounds"`
	Stopped  string       `json:"stopped,omitempty"`  // the limit that ended a bounded search
	Property string       `json:"property,omitempty"` // the violated property
	Text     string       `json:"text,omitempty"`     // how it is violated
	Scenario string       `json:"scenario,omitempty"` // the scenario of a run that ends with the violation; open can run it
	Steps    int          `json:"steps,omitempty"`    // of this run
	Story    []check.Told `json:"story,omitempty"`    // what happens in these steps
	// NoReturn is the first step after which every schedule within the bounds violates the
	// property. It is 0 if that holds from the start, and absent if it is unknown.
	NoReturn  *int              `json:"noReturn,omitempty"`
	Fate      string            `json:"fate,omitempty"` // NoReturn in words
	Unreached []string          `json:"unreached"`      // rules that no schedule applied
	Sometimes []check.Sometimes `json:"sometimes"`
	Command   string            `json:"command"` // the command that runs the same search
}

// Progress reports the progress of a request.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Done is an answer without contents.
type Done struct{}

// Header returns the header of the frame as JSON.
func (f *Frame) Header() ([]byte, error) {
	head, err := json.Marshal(struct {
		ID   uint64 `json:"id"`
		Type string `json:"type"`
	}{f.ID, f.Type})
	if err != nil || f.Head == nil {
		return head, err
	}
	fields, err := json.Marshal(f.Head)
	if err != nil {
		return nil, fmt.Errorf("engine: encoding a frame: %w", err)
	}
	if len(fields) == len("{}") {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), fields[1:]...), nil
}
