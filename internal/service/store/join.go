package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const joinName = "join.json"

// Joined is what the cluster told a server that joined it.
type Joined struct {
	Identity
	// Peers are the peer addresses of the other servers at that time. The present addresses
	// are in the log, once this server has it.
	Peers map[uint64]string
}

// joinJSON is the content of the join file. Until the cluster has answered it has only the
// UID.
type joinJSON struct {
	Format  int               `json:"format"`
	UID     string            `json:"uid"`
	Cluster string            `json:"cluster,omitempty"`
	Server  uint64            `json:"server,omitempty"`
	Peers   map[string]string `json:"peers,omitempty"`
}

// Join returns what the cluster told this server when it joined. If the server has not been
// told yet, Join calls ask with the UID that the directory will have. The UID is written to the
// disk first, and the answer before Join returns. So the server always asks with the same UID,
// however often it crashes, and gets one id.
func Join(dir string, ask func(uid uint64) (Joined, error)) (Joined, error) {
	lock, err := takeDirectory(dir)
	if err != nil {
		return Joined{}, err
	}
	joined, err := join(dir, ask)
	return joined, errors.Join(err, lock.Close())
}

func join(dir string, ask func(uid uint64) (Joined, error)) (Joined, error) {
	told, err := readJoin(dir)
	switch {
	case err == nil && told.Server != 0:
		return told, nil
	case errors.Is(err, os.ErrNotExist):
		if taken, err := exists(filepath.Join(dir, metaName)); err != nil {
			return Joined{}, fmt.Errorf("store: %w", err)
		} else if taken {
			return Joined{}, &DirectoryError{dir, "is that of a server which did not join by --join; start it with the peers it was created with, or join with an empty directory"}
		}
		told.UID = drawUID()
		if err := writeJoin(dir, told); err != nil {
			return Joined{}, err
		}
	case err != nil:
		return Joined{}, err
	}
	uid := told.UID
	if told, err = ask(uid); err != nil {
		return Joined{}, err
	}
	told.UID = uid
	return told, writeJoin(dir, told)
}

func readJoin(dir string) (Joined, error) {
	path := filepath.Join(dir, joinName)
	var j joinJSON
	if _, err := readJSON(path, &j); err != nil {
		return Joined{}, err
	}
	told := Joined{Identity: Identity{Server: j.Server}, Peers: make(map[uint64]string)}
	var errs []error
	parse := func(text string, base int) uint64 {
		n, err := strconv.ParseUint(text, base, 64)
		errs = append(errs, err)
		return n
	}
	told.UID = parse(j.UID, 16)
	if j.Server != 0 {
		told.Cluster = parse(j.Cluster, 16)
	}
	for _, id := range slices.Sorted(maps.Keys(j.Peers)) {
		told.Peers[parse(id, 10)] = j.Peers[id]
	}
	if err := errors.Join(errs...); err != nil || told.UID == 0 {
		return Joined{}, &CorruptError{Path: path, Reason: "it was edited; its content must be as this program wrote it"}
	}
	return told, nil
}

func writeJoin(dir string, told Joined) error {
	j := joinJSON{Format: formatVersion, UID: hex(told.UID), Server: told.Server}
	if told.Server != 0 {
		j.Cluster, j.Peers = hex(told.Cluster), make(map[string]string)
		for id, address := range told.Peers {
			j.Peers[strconv.FormatUint(id, 10)] = address
		}
	}
	return replace(filepath.Join(dir, joinName), encoded(j))
}
