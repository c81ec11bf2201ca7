//go:build unix

package cli

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// TestSignalAtTheEnd: a signal that comes once the work is done does not end the process, which then exits with its status.
func TestSignalAtTheEnd(t *testing.T) {
	ctx := Interrupts()
	if status := Main(ctx, []string{"lowtoggle", "passes"}, io.Discard, io.Discard); status != 0 {
		t.Fatalf("status %d", status)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}
