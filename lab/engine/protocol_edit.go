package engine

// Edit is a change that a user makes to a run after a record. It adds one line to the scenario.
type Edit struct {
	// Do is a fault, a command, or a change of control.
	//
	// A fault is one of crash, restart, pause, resume (Rank, [For]), partition (Ranks, [For],
	// [OneWay]), heal, lose, repeat, delay (Flight; delay: By).
	//
	// A command is one of acquire (Rank, [For]: how long it stays inside), release, cancel,
	// campaign, resign, leave, record (Rank), suspect, trust, fail, rejoin (Rank: the subject;
	// To: the process that is informed). While the user has control, a command without For is a turn.
	//
	// A change of control is one of control (the user chooses all events after the record), turn
	// (Turn is the next event), rest (events happen automatically again). These three delete the
	// turns after the record.
	Do     string `json:"do"`
	Turn   string `json:"turn,omitempty"` // in the format of a schedule in a scenario
	Rank   int    `json:"rank,omitempty"`
	To     int    `json:"to,omitempty"`
	Ranks  []int  `json:"ranks,omitempty"`
	Flight int    `json:"flight,omitempty"`
	For    string `json:"for,omitempty"` // a time in the format of scenarios: 3, 2.5D, 5ms
	OneWay bool   `json:"oneWay,omitempty"`
	By     int64  `json:"by,omitempty"` // nanoseconds
}

// Turns is the answer to the call turns.
type Turns struct {
	Run     int      `json:"run"`
	At      int      `json:"at"`
	From    int      `json:"from"` // the last record before the choices: faults, starts and the rest of an event come after At by themselves
	Held    bool     `json:"held"` // the user has control there; otherwise these are the turns after taking control
	Taken   int      `json:"taken"`
	Left    int      `json:"left"` // turns of the scenario that come later
	Time    int64    `json:"time"` // of the next turn, nanoseconds
	Choices []Choice `json:"choices"`
}

// Choice is a possible next turn.
type Choice struct {
	Turn string `json:"turn"`
	Do   string `json:"do"`            // arrive, expire, give
	Why  string `json:"why,omitempty"` // the reason for which it cannot be taken
	// Overtake is the turn in which the message overtakes an older one. It is present if only the
	// older message blocks this one.
	Overtake string `json:"overtake,omitempty"`
	Rank     int    `json:"rank"`              // of the process at which it happens
	From     *int   `json:"from,omitempty"`    // the sender
	Message  string `json:"message,omitempty"` // its name
	Cause    int    `json:"cause,omitempty"`   // the record that led to it
	Pending  bool   `json:"pending,omitempty"` // without control it would happen at Due
	Lo       int64  `json:"lo,omitempty"`      // the earliest time at which the timer may fire
	Due      int64  `json:"due,omitempty"`
}

// Edited is the answer to the call edit. Open the text as similar to the run to see what it
// changes.
type Edited struct {
	Text string `json:"text"`
	Line int    `json:"line"` // the line that was added or changed
	Item string `json:"item"` // what was added
	Time int64  `json:"time"` // when it happens, nanoseconds
}
