package nemesis

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

const (
	// servers have the first places of the world; the hosts of clients have the others.
	servers = 3
	hosts   = 3
)

// world is a router and several hosts, called places. The router is the director's own namespace. Each
// place is a namespace with a link to the router. All packets between places pass the router, which
// forwards or drops them.
type world struct {
	places int
	// lossy: the kernel can delay and lose packets at random.
	lossy bool
	// timely: a process can be started with other clocks.
	timely bool
}

// run runs a command. Its error has the output of the command.
func run(words ...string) error {
	output, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

// build builds a world in the namespaces of this process, which no other process may share.
func build(places int) (*world, error) {
	// Mounts stay in this namespace. The ip command keeps its names in /run.
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making the mounts private: %w", err)
	}
	if err := mountDisk("/run", "1m"); err != nil {
		return nil, err
	}
	if err := run("ip", "link", "set", "lo", "up"); err != nil {
		return nil, err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return nil, err
	}
	w := &world{places: places}
	for n := 1; n <= places; n++ {
		if err := w.addPlace(n); err != nil {
			return nil, err
		}
	}
	return w, w.probe()
}

// mountDisk mounts an empty disk of the given size, in memory.
func mountDisk(dir, size string) error {
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		return fmt.Errorf("mounting a small disk at %s: %w", dir, err)
	}
	return nil
}

// host and router return the addresses of the two ends of a link.
func host(n int) string   { return fmt.Sprintf("10.97.%d.2", n) }
func router(n int) string { return fmt.Sprintf("10.97.%d.1", n) }

func place(n int) string { return fmt.Sprint("place-", n) }
func line(n int) string  { return fmt.Sprint("line-", n) }

func (w *world) addPlace(n int) error {
	for _, command := range []string{
		"netns add PLACE",
		"link add LINE type veth peer name eth0 netns PLACE",
		"address add ROUTER/24 dev LINE",
		"link set LINE up",
		"-netns PLACE address add HOST/24 dev eth0",
		"-netns PLACE link set eth0 up",
		"-netns PLACE link set lo up",
		"-netns PLACE route add default via ROUTER",
	} {
		words := strings.NewReplacer("PLACE", place(n), "LINE", line(n), "ROUTER", router(n), "HOST", host(n)).Replace("ip " + command)
		if err := run(strings.Fields(words)...); err != nil {
			return err
		}
	}
	return nil
}

// probe tries each tool once.
func (w *world) probe() error {
	if err := w.cut(1, 2); err != nil {
		return err
	}
	if err := w.mend(1, 2); err != nil {
		return err
	}
	w.timely = run(append(otherClocks(1), "true")...) == nil
	w.lossy = run("tc", "qdisc", "add", "dev", line(1), "root", "netem", "loss", "1%") == nil
	if w.lossy {
		return w.speed(1)
	}
	if err := w.slow(1); err != nil {
		return err
	}
	return w.speed(1)
}

// at returns the command that starts a program at a place. The command executes the program in its own
// process, so that a signal to one is a signal to the other.
func at(n int) []string { return []string{"ip", "netns", "exec", place(n)} }

// otherClocks returns the command that starts a program, in the same way, with CLOCK_MONOTONIC and
// CLOCK_BOOTTIME moved by a number of seconds. The time of day is the same for all processes of a
// machine.
func otherClocks(seconds int64) []string {
	by := fmt.Sprint(seconds)
	return []string{"unshare", "--time", "--monotonic", by, "--boottime", by}
}

// cut drops all packets from one place to another. Neither of them gets an error.
func (w *world) cut(from, to int) error {
	return run("ip", "rule", "add", "from", host(from), "to", host(to), "blackhole")
}

func (w *world) mend(from, to int) error {
	return run("ip", "rule", "delete", "from", host(from), "to", host(to), "blackhole")
}

// slow makes the link to a place slow. If the kernel can, it delays and drops packets at random.
// Otherwise it limits the rate, so that packets queue up and are dropped when the queue is full.
func (w *world) slow(n int) error {
	words := []string{"tc", "qdisc", "add", "dev", line(n), "root"}
	if w.lossy {
		words = append(words, "netem", "delay", "30ms", "15ms", "loss", "3%")
	} else {
		words = append(words, "tbf", "rate", "256kbit", "burst", "4kb", "latency", "150ms")
	}
	return run(words...)
}

// speed ends slow.
func (w *world) speed(n int) error {
	return run("tc", "qdisc", "delete", "dev", line(n), "root")
}
