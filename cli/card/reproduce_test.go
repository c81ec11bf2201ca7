package card

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// TestReproduceInterrupted: the measurements are kept, and the message says how to continue.
func TestReproduceInterrupted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	file := filepath.Join(out, "fp8-2048-both.json")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := runCard(ctx, "reproduce", "--device", "simulated", "--type", "fp8", "--size", "2048", "--", out)
		ended <- err
	}()
	for there := false; !there; {
		select {
		case err := <-ended:
			t.Fatalf("the run ended before a measurement: %v", err)
		case <-time.After(time.Millisecond):
			_, err := os.Stat(file)
			there = err == nil
		}
	}
	cancel()
	err := <-ended
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), ": the measurements until then are in "+out+"; run the same command to continue") {
		t.Errorf("error %v", err)
	}
	if s, err := experiment.Load(file); err != nil || len(s.Sessions) != 1 || len(s.Sessions[0].Readings) == 0 {
		t.Errorf("kept %+v, %v", s, err)
	}
	if _, err := os.Stat(filepath.Join(out, "report.md")); err == nil {
		t.Error("an interrupted run wrote a report")
	}
}

func TestChanges(t *testing.T) {
	for want, v := range map[string][2]float64{
		"−3.0 … +1.2 %": {-0.03, 0.012},
		"−3.0 %":        {-0.03, -0.0300001},
		"0.0 %":         {-0.0001, 0.0001},
	} {
		if have := changes(v[0], v[1]); have != want {
			t.Errorf("%v: %q, want %q", v, have, want)
		}
	}
}

// TestReproduceInterruptedAtTheEnd: an interrupt between the last point and the report is an error.
func TestReproduceInterruptedAtTheEnd(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"reproduce", "--device", "simulated", "--type", "fp8", "--size", "2048", "--only", "4a", "--quick", "--", out}
	if _, err := runCard(t.Context(), args...); err != nil && !errors.Is(err, exit.ErrShort) {
		t.Fatal(err)
	}
	report := filepath.Join(out, "report.md")
	if err := os.Remove(report); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := runCard(ctx, args...) // all points are measured
	if _, missing := os.Stat(report); !errors.Is(err, context.Canceled) || missing == nil {
		t.Errorf("error %v, report %v", err, missing)
	}

	// A report that cannot be written is an error, also if the time has ended.
	if err := os.MkdirAll(filepath.Join(report, "in the way"), 0o777); err != nil {
		t.Fatal(err)
	}
	more := []string{"reproduce", "--device", "simulated", "--type", "fp8", "--size", "2048", "--quick", "--time", "1ns", "--", out}
	if _, err := runCard(t.Context(), more...); !errors.Is(err, experiment.ErrTime) || !strings.Contains(err.Error(), out+": the report was not written: ") {
		t.Errorf("unwritable report: %v", err)
	}
}
