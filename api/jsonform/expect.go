package jsonform

import (
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
)

// Expectations are the rules about names that are to be held again and again.
type Expectations struct {
	Rules []Expectation `json:"rules"`
}

// ExpectationsOf returns the form of a list of rules.
func ExpectationsOf(a *api.ExpectedResponse) Expectations {
	return Expectations{each(a.GetRules(), ExpectationOf)}
}

// Expectation is the rule that a name is to be held again within a period.
type Expectation struct {
	ResourceName `tstype:",extends"`
	Every        Duration  `json:"every"`
	Set          time.Time `json:"set"`
	SetBy        string    `json:"set_by,omitempty"`
	Held         bool      `json:"held"`
	// Last is the newest hold or, if nobody holds the name, the hold that ended last.
	Last *LastHold `json:"last,omitempty"`
	// Idle is for how long nobody has held the name.
	Idle    Duration `json:"idle"`
	Overdue bool     `json:"overdue"`
}

// LastHold is a hold that lasts, or one that has ended.
type LastHold struct {
	Fence Uint64    `json:"fence"`
	Since time.Time `json:"since"`
	// Until and How are missing while the hold lasts. How is released, closed, expired or dropped.
	Until   *time.Time `json:"until,omitempty"`
	How     string     `json:"how,omitempty"`
	Owner   string     `json:"owner,omitempty"`
	Host    string     `json:"host"`
	PID     int64      `json:"pid"`
	Program string     `json:"program"`
}

// ExpectationOf returns the form of a rule.
func ExpectationOf(e *api.Expectation) Expectation {
	form := Expectation{
		ResourceName: ResourceNameOf(e.GetClass(), e.GetName()), Every: Duration(e.GetEveryNs()), Set: wallClock(e.GetSetUnixNs()), SetBy: e.GetSetBy(),
		Held: e.GetHeld(), Idle: Duration(e.GetIdleNs()), Overdue: e.GetOverdue(),
	}
	l := e.GetLast()
	if l == nil {
		return form
	}
	form.Last = &LastHold{
		Fence: Uint64(l.GetFence()), Since: wallClock(l.GetSinceUnixNs()), Owner: l.GetOwner(), Host: l.GetHost(), PID: l.GetPid(), Program: l.GetProgram(),
	}
	if l.GetHow() != api.Ending_ENDING_UNSPECIFIED {
		form.Last.Until, form.Last.How = new(wallClock(l.GetUntilUnixNs())), strings.ToLower(strings.TrimPrefix(l.GetHow().String(), "ENDING_"))
	}
	return form
}
