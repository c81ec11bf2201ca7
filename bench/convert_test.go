package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cli"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// childEnv makes the test binary act as the lowtoggle command, so a whole process can be timed and its memory
// measured.
const childEnv = "LOWTOGGLE_BENCH_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(cli.Main(cli.Interrupts(), os.Args, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// BenchmarkConvert times convert --passes round=4 on a 2 GB folder as a process, alternating with cp -r and sync of
// the same folder. It reports both times, their ratio, and the process's peak memory without mapped files with its
// limit.
func BenchmarkConvert(b *testing.B) {
	dir := b.TempDir()
	model := synthesise(b, dir, "llama-2gb")
	m, err := weights.Open(model)
	if err != nil {
		b.Fatal(err)
	}
	size, largest := m.Size(), int64(0)
	for _, t := range m.Infos() {
		largest = max(largest, t.Size())
	}
	m.Close()
	var copying, converting time.Duration
	var peak int64
	run(b, "cp", "-r", model, filepath.Join(dir, "warm-up")) // the source is in the page cache for both
	b.SetBytes(size)
	b.ResetTimer()
	for i := range b.N {
		out := filepath.Join(dir, fmt.Sprint("out", i))
		b.StopTimer()
		settle(b, dir)
		start := time.Now()
		run(b, "cp", "-r", model, filepath.Join(dir, "copy"))
		syscall.Sync()
		copying += time.Since(start)
		settle(b, dir)
		b.StartTimer()
		start = time.Now()
		peak = max(peak, convert(b, model, out, "--passes", "round=4"))
		converting += time.Since(start)
	}
	b.ReportMetric(copying.Seconds()/float64(b.N), "cp-s/op")
	b.ReportMetric(converting.Seconds()/copying.Seconds(), "convert/cp")
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
	b.ReportMetric(float64(3*largest+100e6)/1e6, "allowed-MB")
}

func synthesise(b *testing.B, dir, config string) string {
	b.Helper()
	js, err := synth.Config(config)
	if err != nil {
		js = []byte(config)
	}
	model := filepath.Join(dir, "model")
	if err := synth.Folder(context.Background(), js, model, synth.Options{}); err != nil {
		b.Fatal(err)
	}
	return model
}

// settle removes the output of earlier rounds and waits for the disk.
func settle(b *testing.B, dir string) {
	b.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "model" {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	syscall.Sync()
}

func run(b *testing.B, name string, args ...string) {
	b.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// convert runs lowtoggle convert as a process and returns its peak memory without mapped files, in bytes.
func convert(b *testing.B, model, out string, flags ...string) int64 {
	b.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"convert", model, out}, flags...)...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var peak int64
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				b.Fatal(err)
			}
			return peak
		case <-tick.C:
			peak = max(peak, anonymous(cmd.Process.Pid))
		}
	}
}

// anonymous returns a process's resident memory without mapped files; 0 if it is not known.
func anonymous(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kB, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kB << 10
		}
	}
	return 0
}
