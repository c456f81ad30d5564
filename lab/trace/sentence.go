package trace

import (
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// Sentence describes the record in one line for people who do not know the format: the event, the
// rules, and the effects. It leaves out timers, saves and effects inside a stack.
//
//	3 gets REQ ts=1 from 2 (R2), sends REPLY ts=2 to 2
func (r *Record) Sentence() string {
	var b strings.Builder
	b.WriteString(r.subject())
	if len(r.Rules) > 0 {
		b.WriteString(" (" + strings.Join(r.Rules, " ") + ")")
	}
	for i := range r.Effects {
		if text := r.Effects[i].sentence(); text != "" {
			b.WriteString(", " + text)
		}
	}
	if r.Note != "" {
		b.WriteString(": " + r.Note)
	}
	return b.String()
}

// subject returns the process and the event.
func (r *Record) subject() string {
	who := text(r.Process)
	switch r.Kind {
	case Drop:
		return r.Message.Text + " from " + text(r.Message.From) + " to " + who + " is lost"
	case Duplicate:
		return r.Message.Text + " from " + text(r.Message.From) + " to " + who + " is repeated"
	case Partition:
		return "a partition begins"
	case Heal:
		return "all links work again"
	}
	if r.Timer != "" {
		return who + "'s " + r.headline()
	}
	if r.Word != "" {
		return who + " votes " + r.Word
	}
	if verb, known := verbs[r.Kind]; known {
		return who + " " + verb + optional(" ", r.Peer)
	}
	return who + " " + r.headline()
}

// verbs has the words for what a process does in a record of a kind. Other kinds appear as in the
// text format.
var verbs = map[string]string{
	process.Start.String():    "starts",
	process.Restart.String():  "restarts",
	process.Acquire.String():  "asks to enter",
	process.Cancel.String():   "gives up",
	process.Release.String():  "leaves",
	process.Campaign.String(): "starts an election",
	process.Resign.String():   "resigns",
	process.Record.String():   "records a global state",
	process.Suspect.String():  "suspects",
	process.Trust.String():    "trusts",
	process.Fail.String():     "learns of the crash of",
	process.Rejoin.String():   "learns of the return of",
	process.Elected.String():  "learns of the new leader",
	process.Leave.String():    "is asked to go",
	Crash:                     "crashes",
	Pause:                     "pauses",
	Resume:                    "resumes",
}

// sentence returns the words for an effect, or "".
func (e *Effect) sentence() string {
	if e.Internal {
		return ""
	}
	told := ""
	switch process.EffectKindByName(e.Kind) {
	case process.EffectSend:
		told = "sends " + e.Message.Text + optional(" to ", e.Message.To)
	case process.EffectBroadcast:
		told = "sends " + e.Message.Text + " to all others"
	case process.EffectGrant:
		told = "enters with fence " + e.Fence
	case process.EffectRevoke:
		told = "must leave"
	case process.EffectElect:
		told = "takes" + optional(" ", e.Peer) + " for the leader"
	case process.EffectSuspect, process.EffectTrust:
		told = e.Kind + "s" + optional(" ", e.Peer)
	case process.EffectDeliver:
		told = "delivers " + e.Message.Text
	case process.EffectDecide:
		told = "decides " + e.Word
		if e.Word == "" {
			told = "decides " + strconv.FormatInt(e.Value, 10)
		}
	default:
		return ""
	}
	if e.Cut {
		told += " (cut off by the crash)"
	}
	return told
}
