package guard

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Lookup returns the path of the command called name; the error is a
// *StartError. It differs from exec.LookPath in what env does: a file that is
// found but may not be executed is told apart from one that is not there.
func Lookup(name string) (string, error) {
	if runtime.GOOS == "windows" {
		return lookupWindows(name)
	}
	if strings.ContainsRune(name, filepath.Separator) {
		if err := executable(name); err != nil {
			return "", startError(name, err)
		}
		return name, nil
	}
	if name == "" {
		return "", startError(name, os.ErrNotExist)
	}
	return search(name)
}

func search(name string) (string, error) {
	worst := error(os.ErrNotExist)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if dir == "" || dir == "." {
			path = "./" + name
		}
		switch err := executable(path); {
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist):
			worst = err
		}
	}
	return "", startError(name, worst)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return os.ErrNotExist
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory")
	case info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

func lookupWindows(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", startError(name, err)
	}
	return path, nil
}
