package wrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/cluster/keeps"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/outfile"
)

// The states in a status file.
const (
	stateHeld  = "held"
	stateEnded = "ended"
)

// record is the content of a status file: who has or had what, how that ended, and when.
type record struct {
	Class string `json:"class"` // lock or election
	Name  string `json:"name"`
	State string `json:"state"`
	// Outcome, Status and Error are set at the end. Status is the exit status of conclave, Signal
	// the signal that ended COMMAND, and Error the line that conclave printed. Reason is why a
	// hold without a command was released.
	Outcome outcome `json:"outcome,omitempty"`
	Status  *int    `json:"status,omitempty"`
	Signal  int     `json:"signal,omitempty"`
	Error   string  `json:"error,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// Host and PID are those of conclave, which was started that many clock ticks after the boot.
	// Program is what it runs.
	Host    string          `json:"host"`
	PID     int             `json:"pid"`
	Started jsonform.Uint64 `json:"started,omitempty"`
	Program string          `json:"program,omitempty"`
	// The hold, if there was one. Keeps is the value of CONCLAVE_KEEPS for what runs under it.
	Fence jsonform.Uint64 `json:"fence,omitempty"`
	Floor jsonform.Uint64 `json:"floor,omitempty"`
	Keeps string          `json:"keeps,omitempty"`
	// Holder is the process that has it, if the outcome is conflict.
	Holder *jsonform.Holder `json:"holder,omitempty"`
	// Closed is what keeps it closed, if the outcome is conflict and nobody has it.
	Closed *jsonform.Closed `json:"closed,omitempty"`
	// When it was asked for and granted, and when the run ended.
	Asked   time.Time  `json:"asked"`
	Granted *time.Time `json:"granted,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`

	owner uint32 // of the file that was read
}

// statusFile is the file of --status-file. The methods of one without a path do nothing.
type statusFile struct {
	path string
	record
	failed bool // a write failed, and the error was returned
}

// open checks that the file can be written, before conclave waits for anything.
func (f *statusFile) open(class, name string) error {
	f.Class, f.Name = class, name
	if f.path == "" {
		return nil
	}
	place, err := outfile.Place(f.path)
	if err == nil {
		err = creatable(filepath.Dir(place))
	}
	if err != nil {
		return aboutFile(f.path, err)
	}
	f.Host, _ = os.Hostname() // for people
	f.PID, f.Asked = os.Getpid(), time.Now().UTC()
	if own, err := guard.Find(f.PID); err == nil {
		f.Started = jsonform.Uint64(own.Started)
		own.Close()
	}
	return nil
}

// readRecord reads a status file.
func readRecord(path string) (r record, err error) {
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer file.Close()
	is, err := file.Stat()
	if err != nil {
		return r, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil || r.Class == "" || r.PID <= 0 {
		return r, fmt.Errorf("%s: not a status file of conclave", path)
	}
	r.owner = ownerOf(is)
	return r, nil
}

// maxRecord bounds what is read of a status file, in bytes.
const maxRecord = 1 << 20

// process returns the process that wrote a record, or os.ErrProcessDone if it has ended. It refuses a
// process of another user than the owner of the file: that user may want it to be ended by root.
func (r *record) process() (*guard.Other, error) {
	p, err := guard.Find(r.PID)
	switch {
	case err != nil:
		return nil, err
	case p.Started != uint64(r.Started):
		err = os.ErrProcessDone // another process has its number now
	case p.Owner != r.owner:
		err = errors.New("belongs to another user than the file")
	default:
		return p, nil
	}
	p.Close()
	return nil, err
}

// creatable reports why no file can be created in a directory.
func creatable(dir string) error {
	probe, err := os.CreateTemp(dir, ".conclave-*.tmp")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func aboutFile(path string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("--status-file: %q: %s", path, strings.TrimPrefix(err.Error(), path+": "))
}

// granted writes that the hold stands.
func (f *statusFile) granted(h hold, under keeps.Inherited) error {
	if f.path == "" {
		return nil
	}
	fence, _ := h.Fence() // if it is lost already, the end is written next
	floor, _ := h.Floor()
	_, kept, _ := strings.Cut(keeps.Setting(append(under.Holds[:len(under.Holds):len(under.Holds)], h.Kept())), "=")
	now := time.Now().UTC()
	f.State, f.Granted = stateHeld, &now
	f.Fence, f.Floor, f.Keeps = jsonform.Uint64(fence), jsonform.Uint64(floor), kept
	return f.write()
}

// ended writes how the run ended. If an earlier write failed too, its error was enough.
func (f *statusFile) ended(end outcome, status int, result guard.Result, by conclave.Holder, closed *conclave.Closed, err error) error {
	if f.path == "" {
		return nil
	}
	now := time.Now().UTC()
	f.State, f.Outcome, f.Status, f.Signal, f.Ended = stateEnded, end, &status, int(result.Signal), &now
	if err != nil {
		f.Error = ui.OneLine(err.Error())
	}
	if end == conflict && by.Fence != 0 {
		f.Holder = forms.HolderOf(by)
	}
	if end == conflict && closed != nil {
		f.Closed = new(forms.ClosedOf(*closed))
	}
	said := f.failed
	if err := f.write(); !said {
		return err
	}
	return nil
}

func (f *statusFile) write() error {
	err := outfile.Write(f.path, 0o644, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(f.record)
	})
	if err != nil {
		f.failed = true
		return aboutFile(f.path, err)
	}
	return nil
}
