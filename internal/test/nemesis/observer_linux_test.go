package nemesis

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
)

// observer receives the reports of all workers. It is also the resource that the workers write to: for
// each lock it stores the largest fence seen so far, and refuses smaller ones.
type observer struct {
	socket  net.Listener
	journal *os.File // has every report, for people
	lines   *bufio.Writer
	readers sync.WaitGroup

	mu       sync.Mutex
	reports  []report
	fences   map[string]uint64
	writes   int
	refused  int
	entries  map[workerID]int
	writeErr error // why the journal is incomplete
}

// workerID names one goroutine of a program.
type workerID struct{ program, member int }

// observe returns an observer that listens on a Unix socket at path. All network namespaces can reach
// it.
func observe(path, journal string) (*observer, error) {
	file, err := os.Create(journal)
	if err != nil {
		return nil, err
	}
	socket, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	o := &observer{
		socket: socket, journal: file, lines: bufio.NewWriter(file),
		fences: make(map[string]uint64), entries: make(map[workerID]int),
	}
	o.readers.Go(o.accept)
	return o, nil
}

func (o *observer) accept() {
	for {
		conn, err := o.socket.Accept()
		if err != nil {
			return // closed
		}
		o.readers.Go(func() {
			defer conn.Close()
			o.read(conn)
		})
	}
}

// read receives the reports of one worker until it ends.
func (o *observer) read(conn net.Conn) {
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var r report
		if in.Decode(&r) != nil {
			return // the worker has ended, maybe in the middle of a report
		}
		if out.Encode(o.note(r)) != nil {
			return
		}
	}
}

// note stores a report.
func (o *observer) note(r report) answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if line, err := json.Marshal(r); err == nil {
		_, err = o.lines.Write(append(line, '\n'))
		o.writeErr = errors.Join(o.writeErr, err)
	}
	if r.Kind != wrote {
		if r.Kind == entered {
			o.entries[workerID{r.Program, r.Member}]++
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
func (o *observer) count() map[workerID]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := make(map[workerID]int)
	for s, n := range o.entries {
		counts[s] = n
	}
	return counts
}

// close waits until all reports have been received. All workers must have ended.
func (o *observer) close() error {
	err := o.socket.Close()
	o.readers.Wait()
	return errors.Join(err, o.writeErr, o.lines.Flush(), o.journal.Close())
}
