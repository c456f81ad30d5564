package course_test

import (
	"testing"

	"github.com/conclave-io/conclave/lab/course"
)

func TestPlain(t *testing.T) {
	for unmet, want := range map[string]string{
		"violation: none, expected a violation of progress": "This run breaks no promise. The goal is a violation of progress.",
		"violation: 2 entered while 1 was inside":           "This run breaks a promise: 2 entered while 1 was inside.",
		"waiting: 0, expected 2":                            "At the end 0 processes wait. The goal is 2.",
		"waiting: 1, expected 2":                            "At the end 1 process waits. The goal is 2.",
		"inside: 1, expected 0":                             "At the end 1 process is inside. The goal is 0.",
		"entries: 3, expected 2":                            "The number of entries is 3. The goal is 2.",
		"the run ended by: held, expected quiet":            `The run ends because your choices end (held); choose more, or play the rest. The goal is a run that ends with "quiet".`,
		"order of entries: [1, 2], expected [2, 1]":         "The order of entries is [1, 2]. The goal is [2, 1].",
		"messages per entry: 6, expected 4":                 "The run has 6 messages for each entry. The goal is 4.",
		"TOKEN: 1, expected 0":                              "The number of TOKEN messages is 1. The goal is 0.",
		"leader: 2, expected 3":                             "Leader: 2. The goal is 3.",
		"turn 2, acquire 1: the client waits":               "Turn 2, acquire 1: the client waits.",
		"2 decided [1], expected [2]":                       "2 decided [1], expected [2].",
		"leader: 1 says 2, expected 3":                      "Leader: 1 says 2. The goal is 3.",
	} {
		if got := course.Plain(unmet); got != want {
			t.Errorf("%s:\n%s\nit must be\n%s", unmet, got, want)
		}
	}
}
