package engine

// Edit is what somebody does to a run after a record: one more line of its scenario.
type Edit struct {
	// Do is a fault: crash, restart, pause, resume (Rank, [For]), partition (Ranks, [For],
	// [OneWay]), heal, lose, repeat, delay (Flight; delay: By); or a command: acquire (Rank, [For]: how long
	// it stays inside), release, cancel, campaign, resign, leave, record (Rank), suspect,
	// trust, fail, rejoin (Rank: of whom; To: who is told). Or somebody chooses what
	// happens next: control (nothing happens by itself after the record), turn (Turn),
	// rest (all happens by itself again). These three drop the turns after the record.
	// Commands without For are turns where somebody has control.
	Do     string `json:"do"`
	Turn   string `json:"turn,omitempty"` // as the schedule of a scenario has it
	Rank   int    `json:"rank,omitempty"`
	To     int    `json:"to,omitempty"`
	Ranks  []int  `json:"ranks,omitempty"`
	Flight int    `json:"flight,omitempty"`
	For    string `json:"for,omitempty"` // a time as scenarios have it: 3, 2.5D, 5ms
	OneWay bool   `json:"oneWay,omitempty"`
	By     int64  `json:"by,omitempty"` // ns
}

// Turns answers turns.
type Turns struct {
	Run     int      `json:"run"`
	At      int      `json:"at"`
	Held    bool     `json:"held"` // somebody has control there; else these are the turns after control is taken
	Taken   int      `json:"taken"`
	Left    int      `json:"left"` // turns of the scenario that come later
	Time    int64    `json:"time"` // of the next turn, nanoseconds
	Choices []Choice `json:"choices"`
}

// Choice is a turn that could be next.
type Choice struct {
	Turn string `json:"turn"`
	Do   string `json:"do"`            // arrive, expire, give
	Why  string `json:"why,omitempty"` // it cannot be taken
	// Overtake is the turn that lets the message overtake an older one, if only that is in
	// the way.
	Overtake string `json:"overtake,omitempty"`
	Rank     int    `json:"rank"`              // of the process where it happens
	From     *int   `json:"from,omitempty"`    // the sender
	Message  string `json:"message,omitempty"` // its name
	Cause    int    `json:"cause,omitempty"`   // the record that led to it
	Pending  bool   `json:"pending,omitempty"` // it would happen by itself, at Due
	Lo       int64  `json:"lo,omitempty"`      // the earliest time at which a timer may run out
	Due      int64  `json:"due,omitempty"`
}

// Edited answers edit. Open the text like the run to see what it changes.
type Edited struct {
	Text string `json:"text"`
	Line int    `json:"line"` // that was added or changed
	Item string `json:"item"` // what was added
	Time int64  `json:"time"` // when it happens, nanoseconds
}
