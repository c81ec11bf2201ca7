//go:build unix

package sweep

import (
	"os/exec"
	"syscall"
)

// ownSession gives a process its own session: signals to this process's group and terminal do not reach it.
func ownSession(p *exec.Cmd) { p.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
