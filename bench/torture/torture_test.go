//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// TestMain makes the test binary the program under test where the variable planted is set.
func TestMain(m *testing.M) {
	if mistake, ok := os.LookupEnv(planted); ok {
		os.Exit(plant(mistake))
	}
	hang = 10 * time.Second
	os.Exit(m.Run())
}

// mountable skips a test where the disk in memory cannot be mounted.
var mountable = sync.OnceValue(cannotMount)

func newTester(t *testing.T) *tester {
	t.Helper()
	if reason := mountable(); reason != "" {
		t.Skip(reason)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := mount(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.unmount)
	return &tester{disk: d, program: program}
}

func plantedStart() tree {
	start := tree{"work": {folderMode, ""}, "tmp": {folderMode, ""}, "home": {folderMode, ""}}
	for i, name := range plantedFiles {
		start.add("src/"+name, strings.Repeat(fmt.Sprint(i), 40_000))
	}
	return start
}

// trials runs trials on a planted program until one fails, at most n, and returns the failure.
func trials(t *testing.T, mistake string, n int) (failure, int) {
	t.Helper()
	t.Setenv(planted, mistake)
	tt := newTester(t)
	s := scenario{name: "planted", args: []string{"copy"}, result: "out"}
	ctx := context.Background()
	ref, err := tt.undisturbed(ctx, s, plantedStart())
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for number := range n {
		faults := drawFaults(rand.New(rand.NewPCG(1, uint64(number))), ref.count)
		// The FUSE library in this binary needs descriptors before main.
		faults = slices.DeleteFunc(faults, func(f fault) bool { return f.Kind == kindDescriptors || f.Kind == kindMemory })
		f, came, err := tt.try(ctx, s, ref, faults)
		if err != nil {
			t.Fatal(err)
		}
		if total += len(came); len(f.What) > 0 {
			return f, total
		}
	}
	return failure{}, total
}

// TestRight: a program without a mistake passes.
func TestRight(t *testing.T) {
	f, faults := trials(t, "", 80)
	if len(f.What) > 0 {
		t.Error(f)
	}
	if faults < 40 {
		t.Errorf("only %d faults were injected", faults)
	}
}

// TestWrong: each mistake is found within some hundred trials, by the check that is meant for it.
func TestWrong(t *testing.T) {
	for mistake, want := range mistakes {
		t.Run(mistake, func(t *testing.T) {
			f, faults := trials(t, mistake, 400)
			if got := strings.Join(f.What, "\n"); !strings.Contains(got, want) {
				t.Errorf("%d faults found %q, want %q", faults, got, want)
			}
		})
	}
}

// TestPower: data and names each survive a loss of power once they are synced, and data of a failed fsync never does.
func TestPower(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lostData, lostName, kept := false, false, false
	for range 200 {
		d := &disk{ids: 1}
		d.reset(tree{"synced": {folderMode, ""}, "named": {folderMode, ""}})
		n, _ := d.make(d.at("synced"), "file", fileMode, &fuse.InHeader{})
		n.data, n.dirty = []byte("data"), true
		n.sync()
		d.syncFolder(d.at("synced"))
		n, _ = d.make(d.at("named"), "half", fileMode, &fuse.InHeader{})
		n.data, n.dirty = []byte("data"), true
		d.syncFolder(d.at("named"))
		n, _ = d.make(d.at("named"), "loose", fileMode, &fuse.InHeader{})
		n.data, n.dirty = []byte("data"), true
		n.sync()
		d.losePower(rng)
		now := d.contents()
		if now["synced/file"].data != "data" {
			t.Fatalf("what was synced is lost: %v", now)
		}
		half, there := now["named/half"]
		if !there {
			t.Fatalf("a synced name is lost: %v", now)
		}
		lostData = lostData || half.data == ""
		loose, there := now["named/loose"]
		lostName = lostName || !there
		kept = kept || there && half.data == "data"
		if there && loose.data != "data" {
			t.Fatalf("synced data is lost: %v", now)
		}
	}
	if !lostData || !lostName || !kept {
		t.Errorf("data lost %v, a name lost %v, both kept %v: want each at times", lostData, lostName, kept)
	}
}

// TestFaultJSON: -fault reads what a failure prints.
func TestFaultJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var counted tally
	for o := range operations {
		counted.add(o)
	}
	drawn := map[string]bool{}
	for range 1000 {
		f := draw(rng, counted)
		drawn[f.Kind] = true
		js, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var g fault
		if err := json.Unmarshal(js, &g); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(g); err != nil || string(again) != string(js) {
			t.Errorf("%s became %s, %v", js, again, err)
		}
	}
	for _, kind := range kinds {
		if !drawn[kind] {
			t.Errorf("%s is never drawn", kind)
		}
	}
}

// TestEnding: endings that a fault explains are accepted, others not.
func TestEnding(t *testing.T) {
	for _, c := range []struct {
		e     ending
		f     fault
		wrong string
	}{
		{ending{status: 1, stderr: "lowtoggle: disk full"}, fault{Kind: kindError}, ""},
		{ending{status: 1}, fault{Kind: kindError}, "without a message"},
		{ending{status: -1, signal: syscall.SIGKILL}, fault{Kind: kindKill}, ""},
		{ending{status: -1, signal: syscall.SIGKILL}, fault{Kind: kindError}, "signal killed ended the program"},
		{ending{status: 5, stderr: "x"}, fault{Kind: kindError}, "not documented"},
		{ending{status: 2, stderr: "panic: x\n\ngoroutine 1 [running]:"}, fault{Kind: kindError}, "trace"},
		{ending{status: 2, stderr: "fatal error: runtime: out of memory"}, fault{Kind: kindMemory}, ""},
		{ending{status: 2, stderr: "fatal error: runtime: out of memory"}, fault{Kind: kindFull}, "trace"},
		{ending{status: 1, stderr: strings.Repeat("x", longestMessage+1)}, fault{Kind: kindError}, "bytes on standard error"},
		{ending{status: 1, stderr: "x", hung: true}, fault{Kind: kindError}, "did not end"},
	} {
		got := strings.Join(c.e.complaints(c.f), "\n")
		if (c.wrong == "") != (got == "") || !strings.Contains(got, c.wrong) {
			t.Errorf("%+v under %s: %q, want %q", c.e, c.f.Kind, got, c.wrong)
		}
	}
}
