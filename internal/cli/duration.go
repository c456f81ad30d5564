package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// duration is the value of a flag that is a duration. Unlike pflag's, it says how to repair a
// number without a unit.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil && text != "" && strings.Trim(text, "0123456789.+-") == "" {
		return fmt.Errorf("missing unit; use a duration such as %ss or %sms", text, text)
	}
	if err != nil {
		return errors.New("not a duration; use for example 10s, 500ms or 2m")
	}
	*d = duration(v)
	return nil
}

// notPositive returns the error of a duration that must be above zero.
func notPositive(flag string, d duration) error {
	return fmt.Errorf("%s: %v: must be above 0s", flag, &d)
}
