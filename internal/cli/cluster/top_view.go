package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// topView makes lines of text from the last samples.
type topView struct {
	of       ResourceClass
	interval time.Duration
	// before and last are the last two samples without an error. trouble is the error of the
	// newest sample.
	before, last *sample
	trouble      error
}

func (v *topView) take(s sample) {
	if v.trouble = s.err; s.err == nil {
		v.before, v.last = v.last, &s
	}
}

// lines returns a screen of at most height lines. Each is at most width runes wide, unless width is 0.
func (v *topView) lines(width, height int) []string {
	if v.last == nil {
		text := "waiting for the cluster"
		if v.trouble != nil {
			text = ui.OneLine(v.trouble.Error())
		}
		return []string{clip("conclave top: "+text, width)}
	}
	lines := []string{clip(v.head(), width), clip(v.totals(), width)}
	lines = append(lines, "")
	if v.trouble != nil {
		lines[2] = clip(fmt.Sprintf("no answer since %s: %s", v.last.at.Format(time.TimeOnly), ui.OneLine(v.trouble.Error())), width)
	}
	lines = append(lines, aligned(v.servers(), width, 2)...)
	lines = append(lines, "")
	if rows := v.namespaces(); len(rows) > 1 {
		lines = append(lines, clip(v.epoch(), width))
		lines = append(lines, aligned(rows, width, 0)...)
		lines = append(lines, "")
	}
	rows, more := v.busiest(max(height-len(lines)-2, 0))
	lines = append(lines, aligned(rows, width, 0, 2)...)
	if more > 0 {
		lines = append(lines, clip(fmt.Sprintf("and %d more", more), width))
	}
	return lines[:min(len(lines), height)]
}

func (v *topView) head() string {
	s := &v.last.status
	leader := "no leader known"
	if s.Leader != 0 {
		leader = fmt.Sprintf("leader %d, term %d", s.Leader, s.Term)
	}
	return fmt.Sprintf("conclave %s  %s  %s, every %v  q quits", ui.Shown(s.Cluster), leader, v.last.at.Format(time.TimeOnly), v.interval)
}

func (v *topView) totals() string {
	s := &v.last.status
	grants, entries := v.rates()
	return fmt.Sprintf("%d sessions  %d locks  %d elections  %d waiting  %s grants/s  %s log entries/s",
		s.Sessions, s.Locks, s.Elections, s.Waiters, grants, entries)
}

// epochBits is the number of low bits of a fence, which count grants. The bits above them change
// with the term, and with the servers that guard locks by algorithms. Then the low bits restart.
const epochBits = 40

// rates returns how fast fences and the log grew between the last two samples, or "-". If another
// server answered, it may lag behind the first one.
func (v *topView) rates() (grants, entries string) {
	if v.before == nil {
		return "-", "-"
	}
	old, now, took := &v.before.status, &v.last.status, v.last.at.Sub(v.before.at).Seconds()
	rate := func(from, to uint64) string {
		if to < from || took <= 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f", float64(to-from)/took)
	}
	if grants = "-"; old.Fence>>epochBits == now.Fence>>epochBits {
		grants = rate(old.Fence, now.Fence)
	}
	return grants, rate(old.CommitIndex, now.CommitIndex)
}

func (v *topView) servers() [][]string {
	s := &v.last.status
	rows := [][]string{{"SERVER", "ROLE", "CLIENTS AT", "CONNECTED", "LAG"}}
	for _, m := range s.Members {
		connected := m.Connected || m.ID == s.Server
		lag := "-" // only the leader knows it, of connected servers
		if connected && m.MatchIndex > 0 {
			lag = ui.Number(s.CommitIndex - min(m.MatchIndex, s.CommitIndex))
		}
		rows = append(rows, []string{ui.Number(m.ID), role(m), ui.Shown(m.ClientAddress), ui.Yes(connected), lag})
	}
	return rows
}

// epoch describes the servers that guard locks by algorithms, and the last change of them.
func (v *topView) epoch() string {
	var paused time.Duration
	open := 0
	for _, m := range v.last.view.Members {
		if h := m.Home; h != nil {
			paused = max(paused, h.Paused)
			if partOf(h) == "open" {
				open++
			}
		}
	}
	return fmt.Sprintf("epoch %d  %d of %d members open  last pause %v", v.last.view.Epoch, open, len(v.last.view.Members), paused.Round(10*time.Microsecond))
}

// namespaces returns the prefixes that algorithms guard, with the rates between the last two samples.
// The counters of a restarted server begin at 0. Then no rates are shown.
func (v *topView) namespaces() [][]string {
	rows := [][]string{{"NAMESPACE", "GUARD", "NAMES", "ENTRIES/S", "MESSAGES/ENTRY", "WAIT"}}
	var before []admin.Namespace
	if v.before != nil {
		before = perNamespace(&v.before.view)
	}
	for _, n := range perNamespace(&v.last.view) {
		rate, messages, took := "-", "-", "-"
		at := slices.IndexFunc(before, func(b admin.Namespace) bool { return b.Prefix == n.Prefix })
		if at >= 0 && n.Entries >= before[at].Entries && n.Messages >= before[at].Messages {
			entries := float64(n.Entries - before[at].Entries)
			rate = fmt.Sprintf("%.0f", entries/v.last.at.Sub(v.before.at).Seconds())
			if entries > 0 {
				messages = fmt.Sprintf("%.2f", float64(n.Messages-before[at].Messages)/entries)
				took = (time.Duration(float64(n.Waited-before[at].Waited) / entries)).Round(time.Microsecond).String()
			}
		}
		rows = append(rows, []string{ui.Shown(n.Prefix), n.Algorithm, ui.Number(n.Names), rate, messages, took})
	}
	return rows
}

// busiest returns the head and at most limit rows, and the number of rows left out.
func (v *topView) busiest(limit int) (rows [][]string, more int) {
	found := slices.Clone(v.last.resources)
	slices.SortStableFunc(found, func(a, b conclave.Resource) int {
		held := cmp.Compare(min(len(b.Holders), 1), min(len(a.Holders), 1)) // what nobody holds has no age
		return cmp.Or(cmp.Compare(b.QueueLength, a.QueueLength), held, oldest(&a).Compare(oldest(&b)), cmp.Compare(a.Name, b.Name))
	})
	rows = [][]string{{v.of.either("LOCK", "ELECTION"), "WAITING", "HOLDER", "AGE", "FENCE"}}
	for i := range found[:min(limit, len(found))] {
		rows = append(rows, v.busy(&found[i]))
	}
	return rows, len(found) - len(rows) + 1
}

func (v *topView) busy(r *conclave.Resource) []string {
	if len(r.Holders) == 0 && len(r.Closed) > 0 {
		return []string{ui.Shown(r.Name), ui.Number(r.QueueLength), StaysClosed(&r.Closed[0]), "-", "-"}
	}
	if len(r.Holders) == 0 {
		return []string{ui.Shown(r.Name), ui.Number(r.QueueLength), "-", "-", "-"}
	}
	h := r.Holders[0]
	who := fmt.Sprintf("%s %d on %s", ui.Shown(h.Program), h.PID, ui.Shown(h.Host))
	if h.Owner != "" {
		who = fmt.Sprintf("%s (%s)", ui.Shown(h.Owner), who)
	}
	if h.Revoked {
		who = "(asked to leave) " + who
	}
	if more := len(r.Holders) - 1; more > 0 {
		who = fmt.Sprintf("%s and %d more", who, more)
	}
	age := max(v.last.at.Sub(oldest(r)), 0).Truncate(time.Second)
	return []string{ui.Shown(r.Name), ui.Number(r.QueueLength), who, age.String(), ui.Number(h.Fence)}
}

// oldest returns the start of the oldest hold of a resource.
func oldest(r *conclave.Resource) (since time.Time) {
	for i, h := range r.Holders {
		if i == 0 || h.Since.Before(since) {
			since = h.Since
		}
	}
	return since
}

// narrow is the least width of a column that is shortened.
const narrow = 10

// aligned formats rows as columns. If they are too wide, it shortens the yielding columns, in that
// order.
func aligned(rows [][]string, width int, yielding ...int) []string {
	widths := make([]int, len(rows[0]))
	total := 2 * (len(widths) - 1)
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		total += widths[i]
	}
	for _, i := range yielding {
		if less := min(total-width, widths[i]-narrow); width > 0 && less > 0 {
			widths[i] -= less
			total -= less
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			cell = clip(cell, widths[i])
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		lines = append(lines, clip(strings.TrimRight(b.String(), " "), width))
	}
	return lines
}

// clip cuts a text to a width. 0 means no limit.
func clip(text string, width int) string {
	if width == 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}
