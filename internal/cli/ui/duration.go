package ui

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Duration is the value of a flag that is a duration. Unlike pflag's, it says how to repair a
// number without a unit.
type Duration time.Duration

func (d *Duration) String() string { return time.Duration(*d).String() }

func (d *Duration) Type() string { return "duration" }

func (d *Duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil && text != "" && strings.Trim(text, "0123456789.+-") == "" {
		return fmt.Errorf("missing unit; use a duration such as %ss or %sms", text, text)
	}
	if err != nil {
		return errors.New("not a duration; use for example 10s, 500ms or 2m")
	}
	*d = Duration(v)
	return nil
}

// NotPositive returns the error of a duration that must be above zero.
func NotPositive(flag string, d Duration) error {
	return fmt.Errorf("%s: %v: must be above 0s", flag, &d)
}
