package simtest

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/conclave-io/conclave/trace"
	"github.com/conclave-io/conclave/trace/journal"
)

// head is a sink that keeps the first records, and ends the run after them.
type head struct{ records []trace.Record }

const headSize = 1000

var errEnough = errors.New("enough records")

func (h *head) Write(r *trace.Record) error {
	if len(h.records) == headSize {
		return errEnough
	}
	h.records = append(h.records, *r)
	return nil
}

// described runs the beginning of the schedule. It returns an error if the journal
// describes a record differently from the trace.
func (s *schedule) described() error {
	kept, full := *s, head{}
	kept.tally = tally{}
	kept.cfg.Journal = &journal.Journal{}
	if _, err := kept.run(&full); err != nil {
		return err
	}
	records := min(kept.cfg.Journal.Len(), headSize)
	if records != len(full.records) {
		return fmt.Errorf("SEED=%d: the journal has %d records, the trace %d", s.seed, records, len(full.records))
	}
	described := kept.cfg.Journal.Describe(1, records)
	for i := range described {
		if !reflect.DeepEqual(described[i], full.records[i]) {
			return fmt.Errorf("SEED=%d: the journal describes\n%v\nand the trace\n%v", s.seed, &described[i], &full.records[i])
		}
	}
	return nil
}
