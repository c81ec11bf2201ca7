//go:build !linux

package weights

import "os"

func startWriteback(*os.File, int64, int64) {}
