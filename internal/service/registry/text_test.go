package registry

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/settings"
)

// The language of the scripts: what a line says, and how effects are printed.

// words are the words of a line. Those with '=' are options.
type words struct {
	plain   []string
	options map[string]string
	err     error
}

// parseWords splits a line at its spaces. A word in double quotes may carry Go
// escapes (a space is \x20); `"x"*3` stands for "xxx".
func parseWords(line string) words {
	w := words{options: map[string]string{}}
	for _, field := range strings.Fields(line) {
		key, value, option := strings.Cut(field, "=")
		if option && !strings.HasPrefix(field, `"`) {
			w.options[key] = w.unquote(value)
		} else {
			w.plain = append(w.plain, w.unquote(field))
		}
	}
	return w
}

func (w *words) unquote(word string) string {
	if !strings.HasPrefix(word, `"`) {
		return word
	}
	quoted, factor, repeated := strings.Cut(word, "*")
	text, err := strconv.Unquote(quoted)
	w.note(err)
	if !repeated {
		return text
	}
	n, err := strconv.Atoi(factor)
	w.note(err)
	return strings.Repeat(text, n)
}

func (w *words) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *words) at(i int) string {
	if i >= len(w.plain) {
		w.note(fmt.Errorf("word %d is missing", i+1))
		return ""
	}
	return w.plain[i]
}

func (w *words) duration(i int) int64 {
	d, err := time.ParseDuration(w.at(i))
	w.note(err)
	return int64(d)
}

// durationOf returns the duration of an option, or 0.
func (w *words) durationOf(option string) int64 {
	text, given := w.options[option]
	if !given {
		return 0
	}
	d, err := time.ParseDuration(text)
	w.note(err)
	return int64(d)
}

func (w *words) sequence() uint64 {
	n, err := strconv.ParseUint(w.at(2), 10, 64)
	w.note(err)
	return n
}

func (w *words) number(option string, otherwise uint64) uint64 {
	text, given := w.options[option]
	if !given {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	w.note(err)
	return n
}

var opsByName = map[string]Op{
	"open": OpOpen, "renew": OpRenew, "close": OpClose, "acquire": OpAcquire, "try": OpAcquire, "campaign": OpAcquire,
	"release": OpRelease, "cancel": OpCancel, "update": OpUpdate, "expire": OpExpire, "silence": OpSilence, "member": OpMember,
	"share": OpAcquire, "revoke": OpRevoke, "transfer": OpTransfer, "drop": OpDrop, "overtake": OpOvertake, "time": OpTime, "end": OpEnd, "level": OpLevel,
	"enter": OpEnter, "turn": OpTurn, "quiet": OpQuiet, "guard": OpGuard, "watch": OpGuard, "set": OpSet, "note": OpNote,
}

// parseCommand reads one command:
//
//	open a [ttl=10s] [host=H program=P pid=N]
//	renew a SEQ; close a SEQ
//	acquire a SEQ NAME [limit=N] [low=N]; try a SEQ NAME
//	campaign a SEQ NAME [value=V] [limit=N] [priority=N] [patience=5s]
//	  each with least=10m and delay=15s; time
//	release a SEQ hold=N [unused=yes]; cancel a SEQ hold=N; update a SEQ hold=N value=V
//	share a SEQ NAME
//	  each with keeps=NAME@1.2,... (an election is !NAME)
//	revoke a SEQ NAME [class=election] [fence=1.2] [value=REASON]; transfer a SEQ hold=N value=V
//	expire term=N a b; silence term=N a:3s; drop term=N a/SEQ
//	overtake NAME
//	end a [value=REASON] [by=PRINCIPAL]; the answer is that of "op"
//	member ID uid=N
//	level FROM TO
//	set NAME VALUE [by=PRINCIPAL]; note KIND
//	guard PREFIX [algorithm=A] [options=O] [remove=yes] [wait=5s] [force=yes] [change=N] [value=REASON]
//	watch [algorithm=A] [options=O] [value=REASON]
//	enter a SERVER; turn a SEQ epoch=N [coordinator=N]; quiet a SEQ epoch=N change=N
//
// A verdict on "a" names its present number of renewals; "a@2" names 2.
func parseCommand(r *Registry, w words) (Command, error) {
	op, known := opsByName[w.at(0)]
	if !known {
		return Command{}, fmt.Errorf("unknown command %q", w.at(0))
	}
	c := Command{Op: op}
	switch op {
	case OpExpire, OpSilence:
		c.Term = w.number("term", 1)
		for _, word := range w.plain[1:] {
			c.Verdicts = append(c.Verdicts, parseVerdict(r, &w, word))
		}
	case OpDrop:
		c.Term = w.number("term", 1)
		for _, word := range w.plain[1:] {
			name, sequence, _ := strings.Cut(word, "/")
			n, err := strconv.ParseUint(sequence, 10, 64)
			w.note(err)
			c.Claims = append(c.Claims, ClaimID{sessionNamed(name), n})
		}
	case OpLevel:
		_, err := fmt.Sscan(w.at(1)+" "+w.at(2), &c.From, &c.To)
		w.note(err)
	case OpOvertake:
		c.Class, c.Name = Election, w.at(1)
	case OpTime:
	case OpSet, OpNote:
		c.Name = w.at(1)
		if op == OpSet {
			c.Value = w.at(2)
		}
		c.By = &Origin{Actor: w.options["by"], Via: "grpc", Request: [16]byte(sessionNamed("op"))}
	case OpEnd:
		c.Session, c.Value = sessionNamed(w.at(1)), w.options["value"]
		c.By = &Origin{Actor: w.options["by"], Via: "grpc", Remote: "10.0.0.9", Request: [16]byte(sessionNamed("op"))}
	case OpGuard:
		c.Value = w.options["value"]
		if c.Class = View; w.at(0) == "guard" {
			c.Class, c.Name = Lock, w.at(1)
		}
		c.By = &Origin{Actor: w.options["by"], Request: [16]byte(sessionNamed("op"))}
		c.Guarding = &Guarding{
			Use:    view.Use{Algorithm: w.options["algorithm"], Options: w.options["options"]},
			Remove: w.options["remove"] != "", Force: w.options["force"] != "", Change: w.number("change", 0),
		}
		c.Guarding.Wait = w.durationOf("wait")
	case OpEnter:
		c.Session, c.Sequence, c.TTL = sessionNamed(w.at(1)), 1, 12e8
		c.Guarding = &Guarding{Server: w.sequence()}
	case OpMember:
		id, err := strconv.ParseUint(w.at(1), 10, 64)
		w.note(err)
		c.Member = &Member{ID: id, UID: w.number("uid", 0)}
	default:
		c.Session, c.Low = sessionNamed(w.at(1)), w.number("low", 0)
		parseRequest(&w, &c)
	}
	return c, w.err
}

func parseRequest(w *words, c *Command) {
	if c.Op == OpOpen {
		c.Sequence, c.TTL = 1, 10e9
		if ttl, given := w.options["ttl"]; given {
			d, err := time.ParseDuration(ttl)
			w.note(err)
			c.TTL = int64(d)
		}
		c.Host, c.Program, c.PID = w.options["host"], w.options["program"], int64(w.number("pid", 0))
		c.Owner = w.options["owner"]
		return
	}
	c.Sequence = w.sequence()
	c.Hold, c.Value, c.Unused = w.number("hold", 0), w.options["value"], w.options["unused"] != ""
	if c.Op == OpTurn || c.Op == OpQuiet {
		c.Guarding = &Guarding{Epoch: w.number("epoch", 0), Coordinator: w.number("coordinator", 0), Change: w.number("change", 0)}
	}
	if c.Op != OpAcquire && c.Op != OpRevoke {
		return
	}
	c.Name, c.Try, c.Limit = w.at(3), w.at(0) == "try", uint32(w.number("limit", 0))
	c.Shared = w.at(0) == "share"
	if w.at(0) == "campaign" || w.options["class"] == "election" {
		c.Class = Election
	}
	if text, given := w.options["priority"]; given {
		n, err := strconv.ParseInt(text, 10, 64)
		w.note(err)
		c.Priority = n
	}
	c.Patience = w.durationOf("patience")
	c.AtLeast, c.LossDelay = w.durationOf("least"), w.durationOf("delay")
	if text, given := w.options["fence"]; given {
		c.Fence = w.fence(text)
	}
	for _, text := range strings.Split(w.options["keeps"], ",") {
		if text == "" {
			continue
		}
		name, fence, _ := strings.Cut(text, "@")
		k := Kept{Name: name, Fence: w.fence(fence)}
		if name, elected := strings.CutPrefix(name, "!"); elected {
			k.Class, k.Name = Election, name
		}
		c.Keeps = append(c.Keeps, k)
	}
}

func (w *words) fence(text string) uint64 {
	var epoch, count uint64
	_, err := fmt.Sscanf(text, "%d.%d", &epoch, &count)
	w.note(err)
	return epoch<<counterBits | count
}

func parseVerdict(r *Registry, w *words, word string) Verdict {
	word, remaining, timed := strings.Cut(word, ":")
	name, renewals, numbered := strings.Cut(word, "@")
	verdict := Verdict{Session: sessionNamed(name)}
	switch s := r.sessions[verdict.Session]; {
	case numbered:
		n, err := strconv.ParseUint(renewals, 10, 64)
		w.note(err)
		verdict.Renewals = n
	case s != nil:
		verdict.Renewals = s.renewals
	}
	if timed {
		d, err := time.ParseDuration(remaining)
		w.note(err)
		verdict.Remaining = int64(d)
	}
	return verdict
}

// sessionNamed is the session of a short name; "-" is the id of all zeros.
func sessionNamed(name string) (id SessionID) {
	if name != "-" {
		copy(id[:], name)
	}
	return id
}

func sessionName(id SessionID) string { return strings.TrimRight(string(id[:]), "\x00") }

func codeText(code Code) string {
	names := []string{"", "OK", "QUEUED", "HELD", "NOT_HELD", "SESSION_GONE", "INVALID", "EXHAUSTED", "", "UNAVAILABLE", "STALE", "CANCELLED", "", "", "", "REVOKED", "NOT_FOUND", "", "", "", "DEADLOCK", "MOVED", "NOT_MEMBER"}
	if int(code) >= len(names) || names[code] == "" {
		panic(fmt.Sprintf("registry: code %d has no text", code))
	}
	return names[code]
}

// fenceText prints the epoch and the counter.
func fenceText(fence uint64) string {
	return fmt.Sprintf("%d.%d", fence>>counterBits, fence&(1<<counterBits-1))
}

func durationText(ns int64) string { return time.Duration(ns).String() }

func printEffects(b *strings.Builder, fx *Effects) {
	for _, outcome := range fx.Outcomes {
		fmt.Fprintf(b, "  %s/%d %s\n", sessionName(outcome.Session), outcome.Sequence, resultText(outcome.Result))
	}
	for _, list := range []struct {
		label string
		ids   []SessionID
	}{{"renewed", fx.Renewed}, {"ended", fx.Ended}} {
		if len(list.ids) > 0 {
			fmt.Fprintf(b, "  %s:", list.label)
			for _, id := range list.ids {
				fmt.Fprintf(b, " %s", sessionName(id))
			}
			fmt.Fprintln(b)
		}
	}
	if len(fx.Elections) > 0 {
		fmt.Fprintf(b, "  changed: %s\n", strings.Join(fx.Elections, " "))
	}
	if fx.View {
		fmt.Fprintln(b, "  view")
	}
}

func resultText(res Result) string {
	text := codeText(res.Code)
	if res.Fence != 0 {
		text += " fence=" + fenceText(res.Fence)
	}
	if res.Floor != 0 {
		text += " floor=" + fenceText(res.Floor)
	}
	if res.Code == Queued {
		text += fmt.Sprintf(" ahead=%d", res.Ahead)
	}
	if res.Remaining != 0 {
		text += " remaining=" + durationText(res.Remaining)
	}
	if len(res.Revoked) > 0 {
		text += fmt.Sprintf(" revoked=%v", res.Revoked)
	}
	if res.Holder != nil {
		text += " holder=" + holderText(*res.Holder)
	}
	if res.Closed != nil {
		text += " closed=" + fenceText(res.Closed.Fence)
	}
	if res.Message != "" {
		text += ": " + shortened(res.Message)
	}
	if res.Deadlock != nil {
		text += "\n    " + cycleText(res.Deadlock)
	}
	return text
}

// cycleText says who waits for whose hold.
func cycleText(d *Deadlock) string {
	var members []string
	for _, m := range d.Cycle {
		members = append(members, fmt.Sprintf("%s/%d -> %s %s/%d@%s", sessionName(m.Waiter.Session), m.Waiter.Sequence, m.Name, sessionName(m.Holder.Session), m.Holder.Sequence, fenceText(m.Holder.Fence)))
	}
	return fmt.Sprintf("cycle of %d: %s", d.Length, strings.Join(members, ", "))
}

// shortened keeps a script readable that provokes a message with a long value.
func shortened(text string) string {
	if len(text) <= 160 {
		return text
	}
	return text[:100] + "[...]" + text[len(text)-40:]
}

func holderText(h Holder) string {
	text := fmt.Sprintf("%s/%d@%s", sessionName(h.Session), h.Sequence, fenceText(h.Fence))
	if h.Value != "" {
		text += fmt.Sprintf("=%q", h.Value)
	}
	if h.Shared {
		text += "[shared]"
	}
	if h.Revoked {
		text += fmt.Sprintf("[revoked: %s]", h.Reason)
	}
	if h.Host != "" {
		text += fmt.Sprintf("(%s on %s, pid %d)", h.Program, h.Host, h.PID)
	}
	return text
}

func seatsText(seats []view.Seat) (text string) {
	for _, s := range seats {
		text += fmt.Sprintf(" %d:%s", s.Server, sessionName(SeatID(s)))
	}
	return text
}

func watchText(u view.Use) string {
	if u.Algorithm == "" {
		return ""
	}
	return strings.TrimRight("; watch "+u.Algorithm+" "+u.Options, " ")
}

func guardText(g *view.Guard) string {
	use := func(u view.Use) string { return strings.TrimSpace(cmp.Or(u.Algorithm, "agreement") + " " + u.Options) }
	text := fmt.Sprintf("%s: %s", g.Prefix, use(g.Use))
	if g.Change != 0 {
		next := use(g.Next)
		if g.Remove {
			next = "none"
		}
		text += fmt.Sprintf(", change %d to %s, quiet %v, wait %s", g.Change, next, g.Quiet, durationText(g.Conditions.Wait))
	}
	if g.Conditions.Force {
		text += ", by force"
	}
	if g.New {
		text += ", new"
	}
	return text
}

func resourceText(res Resource) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s limit=%d held by", res.Name, res.Limit)
	for _, h := range res.Holders {
		fmt.Fprintf(&b, " %s since=%s", holderText(h), durationText(h.Since))
	}
	if res.QueueLength > 0 {
		fmt.Fprintf(&b, "; %d wait:", res.QueueLength)
		for _, waiter := range res.Waiters {
			fmt.Fprintf(&b, " %s/%d since=%s", sessionName(waiter.Session), waiter.Sequence, durationText(waiter.Since))
		}
	}
	for _, l := range res.Closed {
		fmt.Fprintf(&b, "; %s closed until %s, granted at %s", fenceText(l.Fence), durationText(l.Until), durationText(l.Since))
	}
	return b.String()
}

func sessionText(s Session) string {
	text := fmt.Sprintf("%s ttl=%s opened=%s renewals=%d holds=%d waits=%d", sessionName(s.ID), durationText(s.TTL), durationText(s.Opened), s.Renewals, s.Holds, s.Waits)
	if s.Silent {
		text += " silent remaining=" + durationText(s.Remaining)
	}
	if s.Leaving {
		text += " leaving"
	}
	return text
}

func settingsText(s *settings.State) (text string) {
	for _, v := range s.List() {
		text += fmt.Sprintf("%s=%s ", v.Name, v.Value)
	}
	return fmt.Sprintf("%schanged: %v;", text, s.Changed())
}
