package guard

import (
	"encoding/binary"
	"io"
	"syscall"

	"github.com/conclave-io/conclave/internal/boottime"
)

// record is what travels through both pipes. It is far below PIPE_BUF, so a
// write is all or nothing.
type record struct {
	op    byte
	value int64
}

// What the wrapper tells the guard.
const (
	opExtend byte = iota + 1 // value: the new deadline
	opSignal                 // value: the signal to pass on
	opResume                 // the wrapper was continued by its shell
	opStop                   // end the command
)

// What the guard tells the wrapper.
const (
	opStarted    byte = iota + 101 // the command runs
	opFailed                       // value: the errno of the start
	opTooLate                      // the deadline left no room for a start
	opStopped                      // value: the signal by which the terminal stopped the command
	opExited                       // value: the status of the command; nothing is left of it
	opKilled                       // value: the signal that ended the command; nothing is left of it
	opLost                         // precedes opExited and opKilled: the deadline drew near
	opForeground                   // precedes them too: the command had the terminal
)

const recordBytes = 9

func (r record) writeTo(w io.Writer) error {
	var b [recordBytes]byte
	b[0] = r.op
	binary.LittleEndian.PutUint64(b[1:], uint64(r.value))
	_, err := w.Write(b[:])
	return err
}

func readRecord(r io.Reader) (record, error) {
	var b [recordBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return record{}, err
	}
	return record{b[0], int64(binary.LittleEndian.Uint64(b[1:]))}, nil
}

func (r record) deadline() boottime.Time { return boottime.Time(r.value) }
func (r record) signal() syscall.Signal  { return syscall.Signal(r.value) }
