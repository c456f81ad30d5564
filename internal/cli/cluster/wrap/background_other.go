//go:build !linux

package wrap

import (
	"errors"
	"os"
)

// detach is not reached: check refuses --background on this system.
func (*keeper) detach() error { return errors.ErrUnsupported }

func (*keeper) attach() {}

func (*keeper) tellParent() error { return errors.ErrUnsupported }

// ownerOf is not needed where no process is found by a status file.
func ownerOf(os.FileInfo) uint32 { return 0 }
