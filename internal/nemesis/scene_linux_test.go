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
	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/internal/local"
)

// diskSize is what a server has: room for two snapshots, the log that belongs to
// them, and what is given to the log ahead.
const diskSize = "128m"

// scene is a play in progress.
type scene struct {
	play    play
	world   *world
	began   time.Time
	cluster *local.Cluster
	// client is that of the director, who sits at the router: no fault of the
	// network comes between him and the servers.
	client   *conclave.Client
	observer *observer
	pumping  *conclave.Leadership // whose value can be as long as is needed

	mu     sync.Mutex
	clocks [servers + 1]time.Duration // by which the clocks of a server are moved
	faults map[string]int             // by name
	killed map[int]int64              // when a program was dead

	// programs are the workers by host; only one goroutine uses them at a time.
	programs map[int]*program
	started  int // how many programs were
}

// program is one process with workers.
type program struct {
	cmd *exec.Cmd
	job job
}

func (s *scene) say(format string, args ...any) {
	fmt.Printf("%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// open builds the scene: disks, servers, the observer, and workers.
func (s *scene) open(ctx context.Context) error {
	said := filepath.Join(s.play.Dir, "said")
	if err := os.Mkdir(said, 0o700); err != nil {
		return err
	}
	var err error
	if s.observer, err = observe(filepath.Join(s.play.Dir, "observer"), filepath.Join(said, "reports")); err != nil {
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
		Binary: s.play.Binary, Dir: said, Hosts: places, Via: s.via, Flags: []string{"--insecure", "--access", "open"},
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

// addDisk gives a server a disk of its own, with its data and, at times, a
// ballast that leaves no room for them.
func (s *scene) addDisk(id int) error {
	disk, data := filepath.Dir(s.ballast(id)), filepath.Join(s.play.Dir, "said", fmt.Sprint("server-", id))
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

func (s *scene) ballast(id int) string {
	return filepath.Join(s.play.Dir, fmt.Sprint("disk-", id), "ballast")
}

// via says how a server is started: at its place, with its clocks.
func (s *scene) via(id int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seconds := int64(s.clocks[id].Seconds()); seconds != 0 {
		return append(at(id), otherClocks(seconds)...)
	}
	return at(id)
}

func (s *scene) setClock(id int, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clocks[id] = by
}

// startProgram starts the workers of a host.
func (s *scene) startProgram(h int) error {
	s.started++
	p := &program{job: job{
		Servers: s.cluster.Addresses(), Socket: s.observer.socket.Addr().String(), Program: s.started, Seed: s.play.Seed,
	}}
	text, err := json.Marshal(p.job)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.play.Dir, "said", fmt.Sprintf("program-%d.log", s.started)))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	words := append(at(h), s.play.Self, workerRole, string(text))
	p.cmd = exec.Command(words[0], words[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	local.Prepare(p.cmd)
	s.programs[h] = p
	return p.cmd.Start()
}

// killProgram kills the workers of a host. After the moment that it notes they
// did nothing.
func (s *scene) killProgram(p *program) error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it reports the kill
	s.killed[p.job.Program] = int64(boottime.Now())
	return err
}

// leader returns who leads, or 1 if nobody does for a while.
func (s *scene) leader() int {
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

// asked asks the one that leads who leads.
func (s *scene) asked(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	members, err := s.client.Members(ctx)
	for _, m := range members {
		if m.Leader {
			return int(m.ID), nil
		}
	}
	return 0, errors.Join(err, errors.New("nobody leads"))
}

// close ends the workers, each after its turn, and then the servers.
func (s *scene) close() error {
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
