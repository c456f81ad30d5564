package nemesis

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
)

// observer hears all workers, and keeps the resource that they write to: for
// each lock the largest fence that it has seen, below which it refuses.
type observer struct {
	socket net.Listener
	book   *os.File // every report, for people
	lines  *bufio.Writer
	ears   sync.WaitGroup

	mu       sync.Mutex
	reports  []report
	fences   map[string]uint64
	writes   int
	refused  int
	entries  map[seat]int
	deafness error // why the book is not whole
}

// seat is one goroutine of a program.
type seat struct{ program, member int }

// observe makes an observer who hears at a path, which leads there from all
// network namespaces.
func observe(path, book string) (*observer, error) {
	file, err := os.Create(book)
	if err != nil {
		return nil, err
	}
	socket, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	o := &observer{
		socket: socket, book: file, lines: bufio.NewWriter(file),
		fences: make(map[string]uint64), entries: make(map[seat]int),
	}
	o.ears.Go(o.accept)
	return o, nil
}

func (o *observer) accept() {
	for {
		conn, err := o.socket.Accept()
		if err != nil {
			return // closed
		}
		o.ears.Go(func() {
			defer conn.Close()
			o.hear(conn)
		})
	}
}

// hear hears one worker until it ends.
func (o *observer) hear(conn net.Conn) {
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var r report
		if in.Decode(&r) != nil {
			return // the worker has ended, maybe within a word
		}
		if out.Encode(o.note(r)) != nil {
			return
		}
	}
}

// note takes a report in.
func (o *observer) note(r report) answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if line, err := json.Marshal(r); err == nil {
		_, err = o.lines.Write(append(line, '\n'))
		o.deafness = errors.Join(o.deafness, err)
	}
	if r.Kind != wrote {
		if r.Kind == entered {
			o.entries[seat{r.Program, r.Member}]++
		}
		o.reports = append(o.reports, r)
		return answer{}
	}
	o.writes++
	if r.Fence < o.fences[r.Lock] {
		o.refused++
		return answer{Refused: true}
	}
	o.fences[r.Lock] = r.Fence
	return answer{}
}

// count returns how often each worker has entered.
func (o *observer) count() map[seat]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := make(map[seat]int)
	for s, n := range o.entries {
		counts[s] = n
	}
	return counts
}

// close waits until all workers, which must have ended, have been heard.
func (o *observer) close() error {
	err := o.socket.Close()
	o.ears.Wait()
	return errors.Join(err, o.deafness, o.lines.Flush(), o.book.Close())
}
