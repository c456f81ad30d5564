package wrap

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/cli/ui"
)

// paceOf is the least time between two lines about one wait. A person at a terminal sees each change.
// What cron mails or a file collects gets a line a minute at most.
func paceOf(to io.Writer) time.Duration {
	if f, is := to.(*os.File); is && ui.IsTerminal(f) {
		return 0
	}
	return time.Minute
}

// pacer says the newest of the texts that it is told, with at least every between two of them. It never
// says the same text twice in a row.
type pacer struct {
	say   func(text string)
	every time.Duration

	mu     sync.Mutex
	said   string
	next   time.Time // when the next text may be said
	newest string
	timer  *time.Timer // set while newest is to be said later
	over   bool
}

// tell says a text now, or later if no other text replaces it until then.
func (p *pacer) tell(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = text
	if p.timer == nil {
		p.flush()
	}
}

// flush is called with mu held.
func (p *pacer) flush() {
	p.timer = nil
	if p.over || p.newest == p.said {
		return
	}
	if left := time.Until(p.next); left > 0 {
		p.timer = time.AfterFunc(left, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.flush()
		})
		return
	}
	p.say(p.newest)
	p.said, p.next = p.newest, time.Now().Add(p.every)
}

// stop drops what has not been said. When it returns, nothing more is said.
func (p *pacer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
