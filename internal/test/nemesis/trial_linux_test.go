package nemesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// diskSize is the size of a server's disk. It has room for two snapshots, their log, and the space that
// the log allocates in advance.
const diskSize = "128m"

// trial is a plan that is being run.
type trial struct {
	plan    plan
	world   *world
	began   time.Time
	cluster *local.Cluster
	// client is the client of the director, which runs at the router. So no fault of the network
	// can separate it from the servers.
	client   *conclave.Client
	observer *observer
	pumping  *conclave.Leadership // pump writes large values to it

	mu     sync.Mutex
	clocks [servers + 1]time.Duration // the offset of the clocks of each server
	faults map[string]int             // counts, by name
	killed map[int]int64              // when each killed program was dead

	// programs are the workers by host; only one goroutine uses them at a time.
	programs map[int]*program
	started  int // the number of programs started
}

// program is one process with workers.
type program struct {
	cmd *exec.Cmd
	job job
}

func (s *trial) say(format string, args ...any) {
	fmt.Printf("%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// open creates the disks, servers, observer and workers.
func (s *trial) open(ctx context.Context) error {
	said := filepath.Join(s.plan.Dir, "said")
	if err := os.Mkdir(said, 0o700); err != nil {
		return err
	}
	var err error
	if s.observer, err = observe(filepath.Join(s.plan.Dir, "observer"), filepath.Join(said, "reports")); err != nil {
		return err
	}
	var places []string
	for id := 1; id <= servers; id++ {
		places = append(places, host(id))
		if err := s.addDisk(id); err != nil {
			return err
		}
	}
	if s.cluster, err = local.Start(local.Config{
		Binary: s.plan.Binary, Dir: said, Hosts: places, Via: s.via, Flags: []string{"--insecure", "--access", "open"},
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	cfg := conclave.Config{Servers: s.cluster.Addresses(), TTL: time.Minute, Program: "director"}
	if s.client, err = conclave.Dial(ctx, cfg); err != nil {
		return errors.Join(err, s.cluster.Died())
	}
	if s.pumping, err = s.client.Campaign(ctx, "pump", nil); err != nil {
		return err
	}
	for h := servers + 1; h <= servers+hosts; h++ {
		if err := s.startProgram(h); err != nil {
			return err
		}
	}
	return nil
}

// addDisk gives a server a disk of its own for its data. At times the disk also has a file, the ballast,
// that leaves no room for the data.
func (s *trial) addDisk(id int) error {
	disk, data := filepath.Dir(s.ballast(id)), filepath.Join(s.plan.Dir, "said", fmt.Sprint("server-", id))
	if err := errors.Join(os.Mkdir(disk, 0o700), os.Mkdir(data, 0o700)); err != nil {
		return err
	}
	if err := mountDisk(disk, diskSize); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(disk, "data"), 0o700); err != nil {
		return err
	}
	return syscall.Mount(filepath.Join(disk, "data"), data, "", syscall.MS_BIND, "")
}

func (s *trial) ballast(id int) string {
	return filepath.Join(s.plan.Dir, fmt.Sprint("disk-", id), "ballast")
}

// via returns the command that starts a server on its host, with its clocks.
func (s *trial) via(id int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seconds := int64(s.clocks[id].Seconds()); seconds != 0 {
		return append(at(id), otherClocks(seconds)...)
	}
	return at(id)
}

func (s *trial) setClock(id int, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clocks[id] = by
}

// startProgram starts the workers of a host.
func (s *trial) startProgram(h int) error {
	s.started++
	p := &program{job: job{
		Servers: s.cluster.Addresses(), Socket: s.observer.socket.Addr().String(), Program: s.started, Seed: s.plan.Seed,
	}}
	text, err := json.Marshal(p.job)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.plan.Dir, "said", fmt.Sprintf("program-%d.log", s.started)))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	words := append(at(h), s.plan.Self, workerRole, string(text))
	p.cmd = exec.Command(words[0], words[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	local.Prepare(p.cmd)
	s.programs[h] = p
	return p.cmd.Start()
}

// killProgram kills the workers of a host. It records a moment after which they did nothing.
func (s *trial) killProgram(p *program) error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // its error is the kill
	s.killed[p.job.Program] = int64(boottime.Now())
	return err
}

// leader returns the id of the leader, or 1 if there is none for 2 s.
func (s *trial) leader() int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	id := 1
	_ = until(ctx, func(ctx context.Context) error {
		leads, err := s.asked(ctx)
		if err == nil {
			id = leads
		}
		return err
	})
	return id
}

// asked asks the cluster for the id of its leader.
func (s *trial) asked(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	members, err := admin.New(s.client).Members(ctx)
	for _, m := range members {
		if m.Leader {
			return int(m.ID), nil
		}
	}
	return 0, errors.Join(err, errors.New("nobody leads"))
}

// close ends the workers, each after its turn, and then the servers.
func (s *trial) close() error {
	var problems []error
	for _, p := range s.programs {
		problems = append(problems, p.cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, p := range s.programs {
		if err := p.cmd.Wait(); err != nil {
			problems = append(problems, fmt.Errorf("program %d: %w", p.job.Program, err))
		}
	}
	return errors.Join(append(problems, s.observer.close())...)
}
