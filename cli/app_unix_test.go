//go:build unix

package cli

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// TestSignalAtTheEnd: a signal after the end of the work does not end the process, which exits with its usual status.
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
