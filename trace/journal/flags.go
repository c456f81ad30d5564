package journal

// Flags say what a record is, as columns hold it.
type Flags uint16

// The flags of a record. Waiting to Paused are the state of its process after it.
const (
	Hidden  Flags = 1 << iota // pictures give it no row: a message was lost or repeated, or a process started
	Network                   // it is at no process, although it names one
	Waiting                   // the client waits
	Inside                    // the client is inside
	Down                      // the process has crashed
	Paused                    // the process is paused
	Granted                   // the client enters with this record
	Sends                     // it sends messages
	_
	Saved // it put the durable fields on disk
	Cut   // a crash cut off a part of it
	News  // it tells of an election, a suspicion, a decision, a delivery, or a right denied or revoked
	Noted // it has a note, such as why a message was lost or a command refused
)

// Fate is how far a message has come.
type Fate uint8

// The fates of a flight. Copy is a bit beside one of them: the link made the message.
const (
	Flying Fate = iota
	Arrived
	Lost

	Copy Fate = 0x80
)
