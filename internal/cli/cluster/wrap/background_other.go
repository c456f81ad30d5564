//go:build !linux

package wrap

import "errors"

// detach is not reached: check refuses --background on this system.
func (*keeper) detach() error { return errors.ErrUnsupported }

func (*keeper) attach() {}

func (*keeper) tellParent() error { return errors.ErrUnsupported }
