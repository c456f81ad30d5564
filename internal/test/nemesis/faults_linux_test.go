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

// fault is a fault that lasts for a while. Its target may depend on who leads when it begins.
type fault struct {
	name  string
	lasts time.Duration
	// begin starts the fault. It returns a description, and a function that ends the fault.
	begin func() (says string, end func() error, err error)
}

// target returns the server id, or the leader if id is 0.
func (s *trial) target(id int) int {
	if id != 0 {
		return id
	}
	return s.leader()
}

// anyone draws a server. Half of the time it returns 0 for the leader, because faults of the leader
// have the most effects.
func anyone(random *rand.Rand) int {
	if random.IntN(2) == 0 {
		return 0
	}
	return 1 + random.IntN(servers)
}

// way is one direction between two hosts.
type way struct{ from, to int }

// cutting returns a fault that cuts ways. It asks for the ways when the fault begins.
func (s *trial) cutting(name string, lasts time.Duration, ways func() ([]way, string)) fault {
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

// others returns the other two servers.
func others(id int) [2]int { return [2]int{id%servers + 1, (id+1)%servers + 1} }

func (s *trial) cutOneWay(id int, deaf bool, lasts time.Duration) fault {
	return s.cutting("cut one way", lasts, func() ([]way, string) {
		id := s.target(id)
		a, b := others(id)[0], others(id)[1]
		if deaf {
			return []way{{a, id}, {b, id}}, fmt.Sprintf("server %d does not hear the others", id)
		}
		return []way{{id, a}, {id, b}}, fmt.Sprintf("the others do not hear server %d", id)
	})
}

func (s *trial) cutBothWays(id int, lasts time.Duration) fault {
	return s.cutting("cut both ways", lasts, func() ([]way, string) {
		id := s.target(id)
		a, b := others(id)[0], others(id)[1]
		return []way{{a, id}, {b, id}, {id, a}, {id, b}}, fmt.Sprintf("server %d and the others hear nothing of each other", id)
	})
}

// cutPair cuts two servers off from each other. The third can still reach both.
func (s *trial) cutPair(id int, both bool, lasts time.Duration) fault {
	return s.cutting("cut between two", lasts, func() ([]way, string) {
		id := s.target(id)
		other := others(id)[0]
		if both {
			return []way{{id, other}, {other, id}}, fmt.Sprintf("servers %d and %d do not hear each other", id, other)
		}
		return []way{{id, other}}, fmt.Sprintf("server %d does not hear server %d", other, id)
	})
}

// cutClients cuts a host of clients off from one server, or from all.
func (s *trial) cutClients(host, id int, lasts time.Duration) fault {
	return s.cutting("cut off clients", lasts, func() ([]way, string) {
		if id == 0 {
			return []way{{host, 1}, {host, 2}, {host, 3}}, fmt.Sprintf("no server hears the clients of host %d", host)
		}
		return []way{{id, host}}, fmt.Sprintf("the clients of host %d do not hear server %d", host, id)
	})
}

func (s *trial) slowLine(n int, lasts time.Duration) fault {
	return fault{"slow line", lasts, func() (string, func() error, error) {
		return fmt.Sprintf("what goes to place %d is slow and gets lost", n), func() error { return s.world.speed(n) }, s.world.slow(n)
	}}
}

func (s *trial) killServer(id int, lasts time.Duration) fault {
	return fault{"kill a server", lasts, func() (string, func() error, error) {
		id := s.target(id)
		return fmt.Sprintf("SIGKILL to server %d", id), func() error { return s.cluster.Restart(id) }, s.cluster.Kill(id)
	}}
}

// killAll kills all servers at once.
func (s *trial) killAll(lasts time.Duration) fault {
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

func (s *trial) stopServer(id int, lasts time.Duration) fault {
	return fault{"stop a server", lasts, func() (string, func() error, error) {
		id := s.target(id)
		return fmt.Sprintf("SIGSTOP to server %d", id), func() error { return s.cluster.Signal(id, syscall.SIGCONT) },
			s.cluster.Signal(id, syscall.SIGSTOP)
	}}
}

// moveClock kills a server and restarts it with other clocks if the kernel can do that.
func (s *trial) moveClock(id int, by, lasts time.Duration) fault {
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

// fillDisk fills the disk of a server. The server continues in the space that it allocated in advance
// for its log. It stops by itself when that space is used up, or when it has to write a snapshot; pump
// makes that happen soon. A server that receives nothing from the others may have nothing to write.
func (s *trial) fillDisk(id int, lasts time.Duration) fault {
	return fault{"fill a disk", lasts, func() (string, func() error, error) {
		id := s.target(id)
		return fmt.Sprintf("the disk of server %d is full", id), func() error {
			pumping, stop := context.WithCancel(context.Background())
			var pump sync.WaitGroup
			pump.Go(func() { s.pump(pumping) })
			ended := s.cluster.Ended(id)
			if ended != nil && s.plan.Lasts == 0 {
				ended = s.cluster.Ended(id) // on a machine that is very busy
			}
			stop()
			pump.Wait()
			if err := os.Remove(s.ballast(id)); err != nil {
				return err
			}
			if ended != nil && s.plan.Lasts > 0 {
				s.say("server %d did not notice that its disk was full", id)
				return nil
			}
			return errors.Join(ended, s.cluster.Restart(id))
		}, fill(s.ballast(id))
	}}
}

// pump writes one and a half times as much to the log as makes servers write a snapshot.
func (s *trial) pump(ctx context.Context) {
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

func (s *trial) stopClients(host int, lasts time.Duration) fault {
	return fault{"stop clients", lasts, func() (string, func() error, error) {
		p := s.programs[host]
		return fmt.Sprintf("SIGSTOP to program %d", p.job.Program), func() error { return p.cmd.Process.Signal(syscall.SIGCONT) },
			p.cmd.Process.Signal(syscall.SIGSTOP)
	}}
}

func (s *trial) killClients(host int, lasts time.Duration) fault {
	return fault{"kill clients", lasts, func() (string, func() error, error) {
		p := s.programs[host]
		return fmt.Sprintf("SIGKILL to program %d", p.job.Program), func() error { return s.startProgram(host) }, s.killProgram(p)
	}}
}

// short returns one fault of each important kind. All of them have the leader as their target.
func (s *trial) short() []fault {
	return []fault{
		s.unseating(s.cutOneWay(0, false, time.Second)),
		s.unseating(s.cutOneWay(0, true, time.Second)),
		s.unseating(s.cutBothWays(0, time.Second)),
		s.unseating(s.killServer(0, time.Second)),
		s.unseating(s.stopServer(0, time.Second)),
		s.fillDisk(0, time.Second/2),
	}
}

// unseating extends a fault of the leader until another server leads. A fault without effect would
// test nothing.
func (s *trial) unseating(f fault) fault {
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
func (s *trial) drawLink(random *rand.Rand) fault {
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
func (s *trial) drawProcess(random *rand.Rand) fault {
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
