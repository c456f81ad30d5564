package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/trace"
)

// recordRange is a part of a run, such as 1001-2000.
type recordRange trace.Range

func (r *recordRange) Type() string { return "range" }

func (r *recordRange) String() string {
	if *r == (recordRange{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

func (r *recordRange) Set(text string) error {
	from, to, _ := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 10, 64)
	last, also := strconv.ParseUint(to, 10, 64)
	if err != nil || also != nil || first == 0 || last < first {
		return errors.New("not a range of records; use for example 1001-2000")
	}
	*r = recordRange{first, last}
	return nil
}
