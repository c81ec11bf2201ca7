//go:build !unix

package sweep

import "os/exec"

func ownSession(*exec.Cmd) {}
