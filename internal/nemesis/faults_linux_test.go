package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/conclave-io/conclave"
)

// fault is something that goes wrong for a while. Who is hit may depend on who
// leads when it begins.
type fault struct {
	name  string
	lasts time.Duration
	// begin says whom it hits, and how it ends.
	begin func() (says string, end func() error, err error)
}

// target is a server, or 0 for the one that leads.
func (s *scene) target(id int) int {
	if id != 0 {
		return id
	}
	return s.leader()
}

// anyone draws a server: every second time the leader, which has most to lose.
func anyone(random *rand.Rand) int {
	if random.IntN(2) == 0 {
		return 0
	}
	return 1 + random.IntN(servers)
}

// way is one direction between two places.
type way struct{ from, to int }

// cutting cuts ways that it learns when it begins.
func (s *scene) cutting(name string, lasts time.Duration, ways func() ([]way, string)) fault {
	return fault{name, lasts, func() (string, func() error, error) {
		cuts, says := ways()
		for _, c := range cuts {
			if err := s.world.cut(c.from, c.to); err != nil {
				return "", nil, err
			}
		}
		return says, func() error {
			for _, c := range cuts {
				if err := s.world.mend(c.from, c.to); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}

// others are the servers beside one of them.
func others(id int) [2]int { return [2]int{id%servers + 1, (id+1)%servers + 1} }

func (s *scene) cutOneWay(id int, deaf bool, lasts time.Duration) fault {
	return s.cutting("cut one way", lasts, func() ([]way, string) {
		id := s.target(id)
		a, b := others(id)[0], others(id)[1]
		if deaf {
			return []way{{a, id}, {b, id}}, fmt.Sprintf("server %d does not hear the others", id)
		}
		return []way{{id, a}, {id, b}}, fmt.Sprintf("the others do not hear server %d", id)
	})
}

func (s *scene) cutBothWays(id int, lasts time.Duration) fault {
	return s.cutting("cut both ways", lasts, func() ([]way, string) {
		id := s.target(id)
		a, b := others(id)[0], others(id)[1]
		return []way{{a, id}, {b, id}, {id, a}, {id, b}}, fmt.Sprintf("server %d and the others hear nothing of each other", id)
	})
}

// cutPair leaves three servers of which two hear each other only by the third.
func (s *scene) cutPair(id int, both bool, lasts time.Duration) fault {
	return s.cutting("cut between two", lasts, func() ([]way, string) {
		id := s.target(id)
		other := others(id)[0]
		if both {
			return []way{{id, other}, {other, id}}, fmt.Sprintf("servers %d and %d do not hear each other", id, other)
		}
		return []way{{id, other}}, fmt.Sprintf("server %d does not hear server %d", other, id)
	})
}

// cutClients keeps a host of clients from servers: from one, or from all.
func (s *scene) cutClients(host, id int, lasts time.Duration) fault {
	return s.cutting("cut off clients", lasts, func() ([]way, string) {
		if id == 0 {
			return []way{{host, 1}, {host, 2}, {host, 3}}, fmt.Sprintf("no server hears the clients of host %d", host)
		}
		return []way{{id, host}}, fmt.Sprintf("the clients of host %d do not hear server %d", host, id)
	})
}

func (s *scene) slowLine(n int, lasts time.Duration) fault {
	return fault{"slow line", lasts, func() (string, func() error, error) {
		return fmt.Sprintf("what goes to place %d is slow and gets lost", n), func() error { return s.world.speed(n) }, s.world.slow(n)
	}}
}

func (s *scene) killServer(id int, lasts time.Duration) fault {
	return fault{"kill a server", lasts, func() (string, func() error, error) {
		id := s.target(id)
		return fmt.Sprintf("SIGKILL to server %d", id), func() error { return s.cluster.Restart(id) }, s.cluster.Kill(id)
	}}
}

// killAll kills all servers at once.
func (s *scene) killAll(lasts time.Duration) fault {
	return fault{"kill all servers", lasts, func() (string, func() error, error) {
		for id := 1; id <= servers; id++ {
			if err := s.cluster.Kill(id); err != nil {
				return "", nil, err
			}
		}
		return "SIGKILL to all servers", func() error {
			for id := 1; id <= servers; id++ {
				if err := s.cluster.Restart(id); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}

func (s *scene) stopServer(id int, lasts time.Duration) fault {
	return fault{"stop a server", lasts, func() (string, func() error, error) {
		id := s.target(id)
		return fmt.Sprintf("SIGSTOP to server %d", id), func() error { return s.cluster.Signal(id, syscall.SIGCONT) },
			s.cluster.Signal(id, syscall.SIGSTOP)
	}}
}

// moveClock kills a server and starts it with other clocks, where the kernel
// can, or with its own again.
func (s *scene) moveClock(id int, by, lasts time.Duration) fault {
	return fault{"move a clock", lasts, func() (string, func() error, error) {
		id := s.target(id)
		if !s.world.timely {
			by = 0
		}
		s.setClock(id, by)
		return fmt.Sprintf("SIGKILL to server %d; its clocks will be %v from those of the machine", id, by),
			func() error { return s.cluster.Restart(id) }, s.cluster.Kill(id)
	}}
}

// fillDisk fills the disk of a server. The server goes on in the room that its
// log has been given ahead, and ends by itself when that is used up, or when it
// has to write a snapshot: pump makes it so soon. One that hears nothing of the
// others may have nothing to write.
func (s *scene) fillDisk(id int, lasts time.Duration) fault {
	return fault{"fill a disk", lasts, func() (string, func() error, error) {
		id := s.target(id)
		return fmt.Sprintf("the disk of server %d is full", id), func() error {
			pumping, stop := context.WithCancel(context.Background())
			var pump sync.WaitGroup
			pump.Go(func() { s.pump(pumping) })
			ended := s.cluster.Ended(id)
			if ended != nil && s.play.Lasts == 0 {
				ended = s.cluster.Ended(id) // on a machine that is very busy
			}
			stop()
			pump.Wait()
			if err := os.Remove(s.ballast(id)); err != nil {
				return err
			}
			if ended != nil && s.play.Lasts > 0 {
				s.say("server %d did not notice that its disk was full", id)
				return nil
			}
			return errors.Join(ended, s.cluster.Restart(id))
		}, fill(s.ballast(id))
	}}
}

// pump writes to the log what is worth a snapshot, and half as much again.
func (s *scene) pump(ctx context.Context) {
	const snapshot = 16 << 20
	for range snapshot / conclave.MaxValue * 3 / 2 {
		if s.pumping.SetValue(ctx, make([]byte, conclave.MaxValue)) != nil {
			return
		}
	}
}

// fill writes a file until its disk is full.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

func (s *scene) stopClients(host int, lasts time.Duration) fault {
	return fault{"stop clients", lasts, func() (string, func() error, error) {
		p := s.programs[host]
		return fmt.Sprintf("SIGSTOP to program %d", p.job.Program), func() error { return p.cmd.Process.Signal(syscall.SIGCONT) },
			p.cmd.Process.Signal(syscall.SIGSTOP)
	}}
}

func (s *scene) killClients(host int, lasts time.Duration) fault {
	return fault{"kill clients", lasts, func() (string, func() error, error) {
		p := s.programs[host]
		return fmt.Sprintf("SIGKILL to program %d", p.job.Program), func() error { return s.startProgram(host) }, s.killProgram(p)
	}}
}

// short is the play with one fault of each important kind, each of which hits
// the leader.
func (s *scene) short() []fault {
	return []fault{
		s.unseating(s.cutOneWay(0, false, time.Second)),
		s.unseating(s.cutOneWay(0, true, time.Second)),
		s.unseating(s.cutBothWays(0, time.Second)),
		s.unseating(s.killServer(0, time.Second)),
		s.unseating(s.stopServer(0, time.Second)),
		s.fillDisk(0, time.Second/2),
	}
}

// unseating makes a fault that hits the leader last until another leads: one that
// had no effect would test nothing.
func (s *scene) unseating(f fault) fault {
	return fault{f.name, f.lasts, func() (string, func() error, error) {
		before := s.leader()
		says, end, err := f.begin()
		return says, func() error {
			another := until(context.Background(), func(ctx context.Context) error {
				if now, err := s.asked(ctx); err != nil || now == before {
					return fmt.Errorf("nobody but server %d leads: %w", before, err)
				}
				return nil
			})
			return errors.Join(another, end())
		}, err
	}}
}

// drawLink draws a fault of the network.
func (s *scene) drawLink(random *rand.Rand) fault {
	lasts := time.Duration(200+random.IntN(2800)) * time.Millisecond
	id, both := anyone(random), random.IntN(2) == 0
	switch random.IntN(7) {
	case 0, 1:
		return s.cutOneWay(id, both, lasts)
	case 2:
		return s.cutBothWays(id, lasts)
	case 3, 4:
		return s.cutPair(id, both, lasts)
	case 5:
		return s.cutClients(servers+1+random.IntN(hosts), random.IntN(servers+1), 2*lasts)
	default:
		return s.slowLine(1+random.IntN(servers+hosts), lasts)
	}
}

// drawProcess draws a fault of a process, of its clock or of its disk.
func (s *scene) drawProcess(random *rand.Rand) fault {
	lasts := time.Duration(100+random.IntN(2400)) * time.Millisecond
	id, host := anyone(random), servers+1+random.IntN(hosts)
	switch random.IntN(12) {
	case 0, 1:
		return s.killServer(id, lasts)
	case 2, 3:
		return s.stopServer(id, lasts)
	case 4:
		return s.killAll(lasts / 4)
	case 5:
		return s.moveClock(id, time.Duration(random.IntN(100))*time.Hour, lasts)
	case 6, 7:
		return s.fillDisk(id, lasts)
	case 8, 9:
		return s.stopClients(host, 2*lasts)
	default:
		return s.killClients(host, lasts)
	}
}
