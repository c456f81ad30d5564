package scenario_test

import (
	"fmt"

	"github.com/conclave-io/conclave/lab/scenario"
)

// A scenario is read once and may be run any number of times.
func ExampleParse() {
	s, err := scenario.Parse("two.yaml", []byte(`
algorithm: lamport
n: 3
workload:
  section: 2
  commands:
    - {at: 1, acquire: 2}
    - {at: 1, acquire: 1}
expect:
  order: [1, 2]
  messages: {REQ: 4, REPLY: 4, REL: 4}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := s.Run()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Met(), outcome.Result.Entries, outcome.Result.MessagesPerEntry())

	_, err = scenario.Parse("typo.yaml", []byte("algorithm: lamport\nn: 3\nwrokload: {}\n"))
	fmt.Println(err)
	// Output:
	// true 2 6
	// typo.yaml:3: the scenario has no key "wrokload"; did you mean "workload"?
}
