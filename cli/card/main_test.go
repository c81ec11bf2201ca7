package card_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli"
)

// TestMain lets tests run this binary as lowtoggle, because a sweep and its watchdog are separate processes.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "lowtoggle" {
		os.Exit(cli.Main(cli.Interrupts(), os.Args, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
