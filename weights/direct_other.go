//go:build !linux

package weights

import (
	"errors"
	"os"
)

func setDirect(*os.File, bool) error { return errors.ErrUnsupported }

func reserve(*os.File, int64) error { return nil }
