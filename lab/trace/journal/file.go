package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// Version is the version of the format of files.
const Version = 1

// A file is a line of JSON, the inputs of all records, and the SHA-256 of both.
type fileHeader struct {
	Version int            `json:"conclave_journal"`
	Trace   trace.Header   `json:"trace"`
	Config  process.Config `json:"config"`
	Kinds   []string       `json:"kinds"`
}

func (j *Journal) firstLine() []byte {
	h := fileHeader{Version, j.header, *j.config, Kinds}
	return h.line()
}

func (h *fileHeader) line() []byte {
	line, err := json.Marshal(h)
	process.Assert(err == nil, "the header of a journal can be encoded")
	return append(line, '\n')
}

// Append appends the journal as a file.
func (j *Journal) Append(b []byte) []byte {
	b = append(append(b, j.firstLine()...), j.data...)
	return append(b, j.Hash(j.Len())...)
}

// Hash returns the SHA-256 of the journal up to a record.
func (j *Journal) Hash(at int) []byte { return j.sum(at).Sum(nil) }

func (j *Journal) sum(at int) hash.Hash {
	sum := sha256.New()
	sum.Write(j.firstLine())
	if at > 0 {
		sum.Write(j.data[:j.columns.end[at-1]])
	}
	return sum
}

// maxWork bounds the memory for the machines of a file: how many processes there are,
// times how many of them do something.
const maxWork = 1 << 24

// Decode reads a file. It takes every step again, so a journal that it returns is one of
// machines that could take them. Find returns the Spec of a name, or nil.
func Decode(file []byte, find func(name string) *process.Spec) (*Journal, error) {
	j := &Journal{}
	rest, err := j.decodeFirstLine(file, find)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	at := len(rest) - sha256.Size
	sum := sha256.Sum256(file[:max(0, len(file)-sha256.Size)])
	if at < 0 || !bytes.Equal(rest[at:], sum[:]) {
		return nil, errors.New("journal: the file ends too early, or was changed")
	}
	d := refill{j: j, machines: map[process.ID]*replay{}}
	for rest = rest[:at]; len(rest) > 0; {
		if rest, err = d.next(rest); err != nil {
			return nil, fmt.Errorf("journal: record %d: %w", j.Len()+1, err)
		}
	}
	if !bytes.Equal(j.data, file[len(file)-sha256.Size-at:len(file)-sha256.Size]) {
		return nil, errors.New("journal: a record is not in the one form that it may have")
	}
	return j, nil
}

// decodeFirstLine begins the journal and returns what follows.
func (j *Journal) decodeFirstLine(file []byte, find func(name string) *process.Spec) ([]byte, error) {
	line, rest, ended := bytes.Cut(file, []byte("\n"))
	var h fileHeader
	if err := json.Unmarshal(line, &h); err != nil || !ended || h.Version == 0 {
		return nil, errors.New("the file is not a journal")
	}
	if h.Version != Version || !slices.Equal(h.Kinds, Kinds) {
		return nil, fmt.Errorf("version %d: written by another release; this program reads version %d with its own kinds of records", h.Version, Version)
	}
	spec := find(h.Trace.Algorithm)
	if spec == nil {
		return nil, fmt.Errorf("unknown algorithm %q", h.Trace.Algorithm)
	}
	if h.Config.N > none {
		return nil, fmt.Errorf("there are %d processes; a journal has at most %d", h.Config.N, none)
	}
	if err := spec.Validate(&h.Config); err != nil {
		return nil, err
	}
	for _, l := range h.Trace.Traitors {
		if spec.Lies == nil || h.Config.Rank(l) == process.None {
			return nil, fmt.Errorf("traitor %d is not one of the processes, or %s has none", l, spec.Name)
		}
	}
	if want := trace.NewHeader(h.Trace.Source, h.Trace.Clock, spec, &h.Config); !slices.Equal(want.Labels, h.Trace.Labels) {
		return nil, errors.New("the labels of the header are not those of the processes")
	}
	j.Begin(spec, &h.Config, h.Trace)
	return rest, nil
}

// refill writes a journal again from its file.
type refill struct {
	j        *Journal
	machines map[process.ID]*replay
	in       input
	ended    bool // with an assertion that failed
}

// next takes one input. If a machine cannot take an input, an assertion fails or the
// machine panics. Both mean that no run has this journal, unless the run ended with this
// assertion. That step has no effects.
func (d *refill) next(buf []byte) (rest []byte, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			rest, err = nil, fmt.Errorf("the machine cannot take it: %v", broken)
		}
	}()
	j, in := d.j, &d.in
	if d.ended {
		return nil, errors.New("the run ended with the assertion that failed before it")
	}
	if rest, err = j.decode(buf, in); err != nil {
		return nil, err
	}
	id, time := uint64(j.Len()+1), in.passed
	if id > 1 {
		time += j.time[id-2]
	}
	if in.back >= id {
		return nil, fmt.Errorf("its cause is %d records back", in.back)
	}
	cause := uint64(0)
	if in.back > 0 {
		cause = id - in.back
	}
	switch in.of {
	case ofMessage:
		if in.kind != kindDrop && in.kind != kindDuplicate || in.message.To == process.None || in.message.From == process.None || in.put != nil {
			return nil, fmt.Errorf("a message has no %s", Kinds[in.kind])
		}
		j.Message(Kinds[in.kind], &in.message, cause, time, in.note)
	case ofHost:
		return rest, d.host(time)
	default:
		return rest, d.step(cause, time)
	}
	return rest, nil
}

// machine returns the replay of the process of the input.
func (d *refill) machine() (*replay, error) {
	r := d.machines[d.in.process]
	if r == nil {
		if (len(d.machines)+1)*d.j.config.N > maxWork {
			return nil, fmt.Errorf("%d processes are too many to read", d.j.config.N)
		}
		r = d.j.replay(d.in.process, 0)
		d.machines[d.in.process] = r
	}
	if d.in.put != nil {
		r.machine = d.j.spec.New(r.process, d.j.config)
		if err := r.walk.Decode(d.in.put, r.machine, d.j.config.N); err != nil {
			return nil, err
		}
		d.j.Put(r.machine)
	}
	return r, nil
}

func (d *refill) host(time int64) error {
	in := &d.in
	if in.kind == kindDrop || in.kind == kindDuplicate || in.back > 0 {
		return fmt.Errorf("a process has no %s", Kinds[in.kind])
	}
	if in.put != nil {
		if _, err := d.machine(); err != nil {
			return err
		}
	}
	d.j.Host(Kinds[in.kind], in.process, time, in.note)
	return nil
}

func (d *refill) step(cause uint64, time int64) error {
	r, err := d.machine()
	if err != nil {
		return err
	}
	in := &d.in
	r.in = *in
	if in.event.Message != nil {
		r.in.event.Message = &r.in.message
	}
	r.step()
	if d.ended = r.broken != nil; d.ended && in.budget > 0 {
		return fmt.Errorf("the machine cannot take it: %w", r.broken)
	}
	d.j.Step(&Step{
		Cause: cause, Time: time, Process: in.process, Event: &r.in.event, Effects: &r.fx, Machine: r.machine,
		Choices: in.choices, Budget: in.budget,
	})
	return nil
}
