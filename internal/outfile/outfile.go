// Package outfile writes the files that people name: whole, or not at all.
//
// A file is written beside its place and then renamed to it. A rename replaces
// whatever has the name, though, be it a device, a FIFO or a link to somewhere
// else. So such a name is looked at first: a link is followed, and stays; what is
// no regular file is refused.
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

// maxLinks is how many links are followed, one after the other.
const maxLinks = 40

// Write puts what fill writes at path: whole and on the disk when Write returns. If
// anything fails, then what was there stays as it was. fill is not called if Place
// refuses the path.
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

// Place returns where the file is to be that is named by path: there, or where the
// links lead that begin there, even if nothing is there yet. It fails if that
// is something else than a regular file.
func Place(path string) (string, error) {
	// The system knows links whose text is no path, such as those to an open pipe.
	is, err := os.Stat(path)
	exists := err == nil
	switch {
	case exists && !is.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file: name a file", path)
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
		return "", fmt.Errorf("%s leads to a file that has no name any more: name a file", path)
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
			// Nothing is shortened here: x/.. is another folder than this if x is a link.
			to = folderOf(path) + string(filepath.Separator) + to
		}
		path = to
	}
	return "", errors.New("too many links")
}

// folderOf returns the folder of a path as it stands there, as filepath.Dir does not.
func folderOf(path string) string {
	dir, _ := filepath.Split(path)
	if dir == "" {
		return "."
	}
	return dir
}

// about says of an error, which may be one of another path, that it is about this one.
func about(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

// SyncDirectory makes the names in a directory durable. Windows does so by itself,
// and knows no other way.
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
