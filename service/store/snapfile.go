package store

import (
	"errors"
	"hash/crc32"
	"os"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// syncEvery is how many bytes of a snapshot's file are written between two syncs. A single sync
// of a large file would delay those of the log by some 100 ms.
const syncEvery = 1 << 20

// snapshotFile returns the content of a snapshot's file in the format of etcd's snap package: a
// message with a checksum and the encoded snapshot. It returns parts, because that package
// makes two copies of the snapshot, which may have hundreds of MB.
func snapshotFile(snapshot *raftpb.Snapshot) ([][]byte, error) {
	metadata, err := proto.Marshal(snapshot.GetMetadata())
	if err != nil {
		return nil, err
	}
	data := snapshot.GetData()
	before := protowire.AppendTag(nil, 1, protowire.BytesType)
	before = protowire.AppendVarint(before, uint64(len(data)))
	after := protowire.AppendTag(nil, 2, protowire.BytesType)
	after = protowire.AppendBytes(after, metadata)
	crc, size := uint32(0), 0
	for _, part := range [][]byte{before, data, after} {
		crc, size = crc32.Update(crc, castagnoli, part), size+len(part)
	}
	head := protowire.AppendTag(nil, 1, protowire.VarintType)
	head = protowire.AppendVarint(head, uint64(crc))
	head = protowire.AppendTag(head, 2, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(size))
	return [][]byte{head, before, data, after}, nil
}

// writeSnapshotFile writes and syncs the file of a snapshot. If it fails it tries to leave no
// file.
func writeSnapshotFile(path string, snapshot *raftpb.Snapshot) error {
	parts, err := snapshotFile(snapshot)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = writeParts(f, parts)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func writeParts(f *os.File, parts [][]byte) error {
	for _, part := range parts {
		for len(part) > 0 {
			n := min(len(part), syncEvery)
			if _, err := f.Write(part[:n]); err != nil {
				return err
			}
			if part = part[n:]; n == syncEvery {
				if err := f.Sync(); err != nil {
					return err
				}
			}
		}
	}
	return f.Sync()
}
