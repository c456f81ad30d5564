package guard

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// record is a message in one of the pipes. It is much smaller than PIPE_BUF, so a write is atomic.
type record struct {
	op    byte
	value int64
}

// The messages from the wrapper to the guard. The sentinel gets the order, and then the deadlines.
const (
	opExtend byte = iota + 1 // value: the new deadline
	opSignal                 // value: the signal to pass on
	opResume                 // the wrapper was continued by its shell
	opStop                   // end the command
	opOrder                  // value: the number of bytes that follow
)

// The messages from the guard to the wrapper.
const (
	opStarted    byte = iota + 101 // the command runs
	opFailed                       // value: the errno of the start
	opTooLate                      // the deadline left no room for a start
	opStopped                      // value: the signal by which the terminal stopped the command
	opExited                       // value: the status of the command; nothing is left of it
	opKilled                       // value: the signal that ended the command; nothing is left of it
	opLost                         // before opExited or opKilled: the guard ended the command because of its deadline
	opForeground                   // before them too: the command had the terminal
	opRemain                       // value: the wait status of the command, which has exited and has left processes
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

// No argument of a process can contain a NUL.
const separator = "\x00"

func (o order) writeTo(w io.Writer) error {
	text := strings.Join(o.args(), separator)
	if err := (record{opOrder, int64(len(text))}).writeTo(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, text)
	return err
}

func readOrder(r io.Reader) (order, error) {
	head, err := readRecord(r)
	if err != nil {
		return order{}, err
	}
	if head.op != opOrder {
		return order{}, fmt.Errorf("operation %d: expected an order", head.op)
	}
	var text strings.Builder
	if _, err := io.CopyN(&text, r, head.value); err != nil {
		return order{}, err
	}
	return parseOrder(strings.Split(text.String(), separator))
}
