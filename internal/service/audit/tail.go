package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/conclave-io/conclave/api/jsonform"
)

// Tail reads an existing log. It returns the last line of each chain, and the number of
// bytes of all complete lines: a server that crashed may have left part of a line behind
// them.
func Tail(log io.Reader) (last []jsonform.AuditRecord, whole int64, err error) {
	texts := make(map[string][]byte)
	in := bufio.NewReaderSize(log, 1<<16)
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		whole += int64(len(text))
		if chain, found := bytes.CutPrefix(text, []byte(`{"v":1,"chain":"`)); found {
			chain, _, _ = bytes.Cut(chain, []byte(`"`))
			texts[string(chain)] = text
		}
	}
	for _, chain := range []string{Acts, Refusals, Own, Grants} {
		text := texts[chain]
		if text == nil {
			continue
		}
		l, err := ParseLine(text)
		if err != nil {
			return nil, 0, err
		}
		last = append(last, l)
	}
	return last, whole, nil
}
