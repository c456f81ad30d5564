// Package outfile writes files that users name: completely, or not at all.
//
// It writes a temporary file in the same directory and then renames it. A rename would also replace
// a device, a FIFO or a symbolic link with that name. So the name is checked first: a link is
// followed and stays; anything that is not a regular file is refused.
package outfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Dash is the name of a file that stands for standard input or standard output.
const Dash = "-"

// ErrDash refuses Dash where no stream can be read or written.
var ErrDash = errors.New(`"-": standard input and output are not possible here; use ./- for a file with this name`)

// maxLinks is how many links are followed, one after the other.
const maxLinks = 40

// Write writes the output of fill to path. The file is complete and on disk when Write returns.
// If anything fails, the old file stays as it was. fill is not called if Place refuses the path.
func Write(path string, mode fs.FileMode, fill func(io.Writer) error) (err error) {
	place, err := Place(path)
	if err != nil {
		return err
	}
	dir := folderOf(place)
	file, err := os.CreateTemp(dir, ".conclave-*.tmp")
	if err != nil {
		return about(path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	err = fill(file)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), place); err != nil {
		return err
	}
	return SyncDirectory(dir)
}

// Place returns the path of the file that path names: path itself, or the target of the links that
// begin there, even if it does not exist yet. It fails if that exists and is not a regular
// file.
func Place(path string) (string, error) {
	// Some links have a text that is not a path, for example those to an open pipe.
	is, err := os.Stat(path)
	exists := err == nil
	switch {
	case exists && !is.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a regular file", path)
	case !exists && !errors.Is(err, fs.ErrNotExist):
		return "", about(path, err)
	}
	place, err := follow(path)
	if err != nil {
		return "", about(path, err)
	}
	if !exists {
		return place, nil
	}
	if found, err := os.Lstat(place); err != nil || !os.SameFile(is, found) {
		return "", fmt.Errorf("%s: the file that it leads to has been removed; use another path", path)
	}
	return place, nil
}

// follow returns the path where the links end that begin at path.
func follow(path string) (string, error) {
	for range maxLinks {
		is, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
		if err != nil || is.Mode()&fs.ModeSymlink == 0 {
			return path, err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			// Do not shorten the path: if x is a link, x/.. is a different folder than this one.
			to = folderOf(path) + string(filepath.Separator) + to
		}
		path = to
	}
	return "", errors.New("too many links")
}

// folderOf returns the folder of a path literally, unlike filepath.Dir.
func folderOf(path string) string {
	dir, _ := filepath.Split(path)
	if dir == "" {
		return "."
	}
	return dir
}

// about returns an error about this path, for an error that may be about another.
func about(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

// SyncDirectory makes the names in a directory durable. On Windows it does nothing: there the
// system does so by itself.
func SyncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
