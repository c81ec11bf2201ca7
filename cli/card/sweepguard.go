package card

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// SweepGuard is the command of a sweep's watchdog. Only a sweep runs it.
var SweepGuard = &cli.Command{
	Name: "sweep-guard", Hidden: true,
	Usage: "restore a card's settings when a sweep is killed; sweep starts it",
	Action: func(c *cli.Context) error {
		return sweep.ServeWatchdog(os.Stdin, c.App.Writer, openCard)
	},
}

// cardName names a card for a watchdog: by its UUID, or as --device names a simulated card, with its file's full path.
func cardName(device string, card power.Info) string {
	file, stateful := strings.CutPrefix(device, simulatedDevice+":")
	switch {
	case stateful:
		return simulatedDevice + ":" + fullPath(file)
	case strings.HasPrefix(device, simulatedDevice):
		return device
	}
	return card.UUID
}

// openCard opens a card by the name that cardName returned. It runs nothing on the card.
func openCard(name string) (power.Card, error) {
	if !strings.HasPrefix(name, simulatedDevice) {
		return power.Open(name)
	}
	m, err := openMachine(name, 0)
	if err != nil {
		return nil, err
	}
	return m.Card(), nil
}

// startWatchdog starts this program as the watchdog of a card.
func startWatchdog(card string, lock *os.File, original sweep.Original) (sweep.Watchdog, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.Command(program, SweepGuard.Name)
	p.Args[0] = os.Args[0]
	p.Stderr = os.Stderr
	return sweep.StartWatchdog(p, card, lock, original)
}

// fullPath returns a file's absolute path, with symbolic links of its folder resolved.
func fullPath(file string) string {
	if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		file = filepath.Join(folder, filepath.Base(file))
	}
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	return file
}
