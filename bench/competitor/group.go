package competitor

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"

	"github.com/conclave-io/conclave/internal/cli/local"
)

// group is the set of processes of one service.
type group struct {
	local.Group
	dir      string
	commands [][]string // by server, from index 0
}

// startGroup starts all commands. Their output is appended to files in dir.
func startGroup(dir string, commands ...[]string) (*group, error) {
	g := &group{dir: dir, commands: commands}
	for id := 1; id <= len(commands); id++ {
		if err := g.Restart(id); err != nil {
			return nil, errors.Join(err, g.Stop())
		}
	}
	return g, nil
}

// Restart starts a server that is down.
func (g *group) Restart(id int) error {
	argv := g.commands[id-1]
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = g.dir
	return g.Run(id, filepath.Join(g.dir, fmt.Sprintf("output-%d.log", id)), cmd)
}

func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // close all at the end, so that no address occurs twice
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
