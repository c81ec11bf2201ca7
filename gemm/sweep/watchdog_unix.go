//go:build unix

package sweep

import (
	"os/exec"
	"syscall"
)

// ownSession starts a process in its own session, so that signals to this process's group and terminal do not reach it.
func ownSession(p *exec.Cmd) { p.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
