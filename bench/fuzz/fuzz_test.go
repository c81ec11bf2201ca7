//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// planted makes a folder of programs that are shell scripts, by package; each package has the target FuzzX.
func planted(t *testing.T, scripts map[string]string) (folder string, list []target) {
	t.Helper()
	folder = t.TempDir()
	for pkg, script := range scripts {
		dir := filepath.Join(folder, treeName, pkg)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, programName), []byte("#!/bin/sh\n"+script), 0o777); err != nil {
			t.Fatal(err)
		}
		list = append(list, target{pkg, "FuzzX"})
	}
	return folder, list
}

const healthy = `echo "$@" >>arguments
echo 'fuzz: elapsed: 3s, execs: 3000 (1000/sec), new interesting: 2 (total: 5)'
echo 'fuzz: elapsed: 4s, execs: 4100 (1100/sec), new interesting: 3 (total: 6)'
echo PASS
`

const broken = `mkdir -p testdata/fuzz/FuzzX && printf 'go test fuzz v1\n' >testdata/fuzz/FuzzX/ab12
echo 'fuzz: elapsed: 3s, execs: 70 (20/sec), new interesting: 0 (total: 5)'
echo '    Failing input written to testdata/fuzz/FuzzX/ab12'
exit 1
`

func runCampaign(t *testing.T, folder string, list []target, output string, until float64) *campaign {
	t.Helper()
	return runCampaignFor(t, time.Minute, folder, list, output, until)
}

func runCampaignFor(t *testing.T, length time.Duration, folder string, list []target, output string, until float64) *campaign {
	t.Helper()
	rec, err := readRecord(output)
	if err != nil {
		t.Fatal(err)
	}
	c := &campaign{folder: folder, targets: list, slice: time.Second, until: until, output: output, record: rec, out: io.Discard, now: run{AtOnce: 2}}
	if err := c.run(t.Context(), length); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRecordContinues: a second run adds to the first one's record, and a failure is kept with its input, out of the seeds.
func TestRecordContinues(t *testing.T) {
	folder, list := planted(t, map[string]string{"a/well": healthy, "b": broken})
	output := filepath.Join(t.TempDir(), "record.json")
	for runs := 1; runs <= 2; runs++ {
		until := 1e-9 // one turn
		if rec, err := readRecord(output); err == nil && rec.Targets["a/well.FuzzX"] != nil {
			until += rec.Targets["a/well.FuzzX"].Seconds + rec.Targets["b.FuzzX"].Seconds
		}
		c := runCampaign(t, folder, list, output, until)
		if !c.failed() {
			t.Error("no target failed")
		}
		rec, err := readRecord(output)
		if err != nil {
			t.Fatal(err)
		}
		well, bad := rec.Targets["a/well.FuzzX"], rec.Targets["b.FuzzX"]
		if len(rec.Runs) != runs || well.Executions < 4100*int64(runs) || well.Executions%4100 != 0 || well.New != 3*well.Executions/4100 || len(well.Crashes) != 0 {
			t.Errorf("%d runs: %+v", len(rec.Runs), well)
		}
		if bad.Executions != 70*int64(runs) || len(bad.Crashes) != runs || bad.Crashes[0].Input != "go test fuzz v1\n" || !strings.Contains(bad.Crashes[0].Output, "execs: 70") {
			t.Errorf("the target that fails: %+v", bad)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, treeName, "b", "testdata", "fuzz", "FuzzX", "ab12")); err == nil {
		t.Error("the failing input stays among the seeds")
	}
	if _, err := os.Stat(filepath.Join(folder, "crashes", "b", "FuzzX", "ab12")); err != nil {
		t.Error(err)
	}
	arguments, err := os.ReadFile(filepath.Join(folder, treeName, "a", "well", "arguments"))
	if err != nil || !strings.Contains(string(arguments), "-test.fuzz=^FuzzX$ -test.parallel=1 -test.fuzztime=1s") {
		t.Errorf("%s %v", arguments, err)
	}
}

// TestEndOfTimeIsNoFailure: Go's message at the end of the time is no failure of the target. Any other end of the program is one.
func TestEndOfTimeIsNoFailure(t *testing.T) {
	const counted = "echo 'fuzz: elapsed: 1s, execs: 34487 (32906/sec), new interesting: 8 (total: 11)'\n"
	const late = counted + "echo '--- FAIL: FuzzX (1.05s)'\necho '    context deadline exceeded'\necho FAIL\n"
	folder, list := planted(t, map[string]string{
		"late":   late + "exit 1\n",
		"failed": strings.Replace(late, "echo '    context", "echo '    wanted 3, have 4: context", 1) + "exit 1\n",
		"panic":  late + "echo 'panic: runtime error'\nexit 2\n",
		"wrote":  broken[:strings.LastIndex(broken, "exit")] + late + "exit 1\n",
	})
	c := runCampaign(t, folder, list, "", 1e-9)
	for _, x := range list {
		did := c.of(x)
		if failed := len(did.Crashes) == 1; failed != (x.Package != "late") {
			t.Errorf("%s: %+v", x, did)
		}
		if x.Package == "late" && (did.Executions != 34487 || did.New != 8) {
			t.Errorf("%s: %+v", x, did)
		}
	}
}

// TestShortestTimeFirst: the target that has run for the shortest time is next.
func TestShortestTimeFirst(t *testing.T) {
	x, y, z := target{"x", "FuzzX"}, target{"y", "FuzzY"}, target{"z", "FuzzZ"}
	c := &campaign{targets: []target{x, y, z}, until: 10, running: map[target]bool{}, crashed: map[target]bool{z: true},
		record: &record{Targets: map[string]*tally{x.String(): {Seconds: 9}, y.String(): {Seconds: 3}}}}
	for _, want := range []target{y, x} {
		if have, ok := c.next(); have != want || !ok {
			t.Errorf("%v %v, want %v", have, ok, want)
		}
	}
	if have, ok := c.next(); ok {
		t.Errorf("%v is left", have)
	}
}

// TestTargetsInSource: every target of the module is found.
func TestTargetsInSource(t *testing.T) {
	root, err := moduleFolder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := inSource(t.Context(), root, regexp.MustCompile("^weights"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, x := range list {
		found[x.String()] = true
	}
	if !found["weights.FuzzOpen"] || !found["weights/quant.FuzzDescribe"] || found["cost.FuzzCalibration"] {
		t.Errorf("found %v", list)
	}
}

// TestSilentTurn: a target that executed nothing in its slice runs again, for longer.
func TestSilentTurn(t *testing.T) {
	const silentOnce = `for last in "$@"; do case $last in -test.fuzztime=*) echo "$last" >>turns;; esac; done
[ "$(wc -l <turns)" = 1 ] && { sleep 0.01; exit; }
` + healthy
	folder, list := planted(t, map[string]string{"x": silentOnce})
	c := runCampaign(t, folder, list, "", 1e-9)
	if err := c.unreached(); err != nil {
		t.Error(err)
	}
	turns, err := os.ReadFile(filepath.Join(folder, treeName, "x", "turns"))
	if err != nil {
		t.Fatal(err)
	}
	lengths := strings.Fields(string(turns))
	if len(lengths) != 2 || lengths[0] != "-test.fuzztime=1s" || !strings.HasPrefix(lengths[1], "-test.fuzztime=1.") {
		t.Errorf("turns %q", lengths)
	}
}

// TestUnreached: targets that executed nothing, or had no turn, are named.
func TestUnreached(t *testing.T) {
	folder, list := planted(t, map[string]string{"well": healthy, "silent": "echo PASS\n"})
	c := runCampaignFor(t, 100*time.Millisecond, folder, list, "", 1e-9)
	if err := c.unreached(); err == nil || !strings.Contains(err.Error(), "silent.FuzzX") || strings.Contains(err.Error(), "well.FuzzX") {
		t.Errorf("a target without executions: %v", err)
	}
	c.targets = append(c.targets, target{"late", "FuzzX"})
	if err := c.unreached(); err == nil || !strings.Contains(err.Error(), "late.FuzzX") {
		t.Errorf("a target without a turn: %v", err)
	}
}
