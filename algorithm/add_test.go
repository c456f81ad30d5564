package algorithm_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/process"
)

func named(name string) *process.Spec {
	return &process.Spec{Name: name, Family: process.Mutex, New: algorithm.Find("lamport").New}
}

// What is added is found, alone and in stacks.
func TestAdd(t *testing.T) {
	defer func(all []*process.Spec) { algorithm.All = all }(algorithm.All)
	before := len(algorithm.All)
	one, two := named("my-lock"), named("lock2")
	if err := algorithm.Add(one, two); err != nil {
		t.Fatal(err)
	}
	if len(algorithm.All) != before+2 || algorithm.Find("my-lock") != one || algorithm.Find("lock2") != two {
		t.Error("not found after it was added")
	}
	if algorithm.Find("chandy-lamport+my-lock") == nil {
		t.Error("not found in a stack")
	}
}

// Add refuses a Spec that the tools cannot run or cannot distinguish from another one,
// and all Specs added with it.
func TestAddRefuses(t *testing.T) {
	before := len(algorithm.All)
	noFamily, noNew := named("a"), named("b")
	noFamily.Family, noNew.New = 0, nil
	for want, spec := range map[string]*process.Spec{
		"algorithm: spec: nil": nil,
		`algorithm: name: "My-Lock": use lower case words joined by hyphens`: named("My-Lock"),
		`algorithm: name: "": use lower case words joined by hyphens`:        named(""),
		`algorithm: name: "a--b": use lower case words joined by hyphens`:    named("a--b"),
		`algorithm: name: "lamport": taken; choose another`:                  named("lamport"),
		`algorithm: name: "lamport-no-tie-break": taken; choose another`:     named("lamport-no-tie-break"),
		`algorithm: name: "twice": taken; choose another`:                    named("twice"),
		`algorithm: "a": Family is not set`:                                  noFamily,
		`algorithm: "b": New is not set`:                                     noNew,
	} {
		err := algorithm.Add(named("twice"), spec)
		if err == nil || err.Error() != want {
			t.Errorf("Add returned %v, want %s", err, want)
		}
		if len(algorithm.All) != before || algorithm.Find("twice") != nil {
			t.Fatalf("%s: something was added", strings.TrimSpace(want))
		}
	}
}
