package apply_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// staged returns a model in several shards, and a plan that changes all shards.
func staged(t *testing.T) (*weights.Model, *plan.Plan) {
	t.Helper()
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{ShardBytes: 25_000}))
	if len(m.Shards) < 5 {
		t.Fatalf("%d shards", len(m.Shards))
	}
	return m, testplan.Make(t, m, "reorder,shift=4/epilogue,round=2", 0)
}

func TestOutputThatCannotBeMade(t *testing.T) {
	m, p := staged(t)
	tmp := t.TempDir()
	there := filepath.Join(tmp, "there")
	testmodel.OK(t, os.Mkdir(there, 0o777))
	testmodel.OK(t, os.WriteFile(filepath.Join(there, "file"), nil, 0o666))
	begun := filepath.Join(tmp, "begun")
	testmodel.OK(t, os.Mkdir(begun+apply.PartialSuffix, 0o777))
	link := filepath.Join(tmp, "link")
	testmodel.OK(t, os.Symlink(m.Dir, link))
	dangling := filepath.Join(tmp, "dangling")
	testmodel.OK(t, os.Symlink("nowhere", dangling))
	before := testmodel.Files(t, m.Dir)
	for _, c := range []struct{ out, want string }{
		{there, "exists already: choose a new folder"},
		{dangling, "exists already"},
		{begun, "this folder holds an unfinished conversion: move the folder away, or resume the conversion"},
		{filepath.Join(m.Dir, "out"), "lies inside the model's folder"},
		{filepath.Join(m.Dir, "onnx", "out"), "lies inside the model's folder"},
		{filepath.Join(link, "out"), "lies inside the model's folder"},
		{filepath.Join(tmp, "nowhere", "out"), "create it first"},
		{m.Dir, "exists already"},
	} {
		_, err := transform.Apply(t.Context(), m, p, c.out, transform.ApplyOptions{})
		testmodel.WantError(t, err, c.want)
	}
	_, err := transform.Apply(t.Context(), m, p, begun, transform.ApplyOptions{})
	if !errors.Is(err, apply.ErrUnfinished) {
		t.Errorf("error %v is not of class ErrUnfinished", err)
	}
	testmodel.SameFiles(t, testmodel.Files(t, m.Dir), before)
	if got := testmodel.Files(t, there); len(got) != 1 {
		t.Errorf("%v were written", got)
	}
}

// TestOutputInsideAFolderOfOneFile: a folder that contains only weights counts as a model's folder; a single file has
// none.
func TestOutputInsideAFolderOfOneFile(t *testing.T) {
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{})
	for _, name := range []string{"config.json", "tokenizer.json", "onnx"} {
		testmodel.OK(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	m := testmodel.Open(t, dir)
	testmodel.WantError(t, apply.CheckOut(m, filepath.Join(dir, "out"), false, nil), "lies inside the model's folder")
	testmodel.OK(t, apply.CheckOut(testmodel.Open(t, m.Shards[0].Path), filepath.Join(dir, "out"), false, nil))
}

func TestAnUnfinishedConversionIsNoModel(t *testing.T) {
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{})
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, apply.JournalName), nil, 0o666))
	m := testmodel.Open(t, dir)
	_, err := transform.Apply(t.Context(), m, testplan.Of(t, m), filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
	testmodel.WantError(t, err, "this model is an unfinished conversion")
}

func TestNoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	m, p := staged(t)
	tmp := filepath.Join(t.TempDir(), "sealed")
	testmodel.OK(t, os.Mkdir(tmp, 0o555))
	_, err := transform.Apply(t.Context(), m, p, filepath.Join(tmp, "out"), transform.ApplyOptions{})
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
}

func TestCancelAnywhereThenResume(t *testing.T) {
	m, p := staged(t)
	want := testmodel.Files(t, testplan.Applied(t, m, nil, p))
	for n := int64(1); ; n++ {
		out := filepath.Join(t.TempDir(), "out")
		if !testplan.Interrupted(t, m, p, out, n, false) {
			if n < 10 {
				t.Errorf("only %d events", n)
			}
			break
		}
		if n%3 == 0 { // resume twice
			testplan.Interrupted(t, m, p, out, 2, true)
		}
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
		testmodel.OK(t, err)
		testmodel.SameFiles(t, testmodel.Files(t, out), want)
		if _, err := os.Lstat(out + apply.PartialSuffix); err == nil {
			t.Fatal("parts are left")
		}
	}
}

// stopped leaves an unfinished conversion behind.
func stopped(t *testing.T, m *weights.Model, p *plan.Plan) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	if !testplan.Interrupted(t, m, p, out, 20, false) {
		t.Fatal("the conversion finished before it was cancelled")
	}
	return out
}

func TestResumeIsOnlyForTheSamePlan(t *testing.T) {
	m, p := staged(t)
	out := stopped(t, m, p)
	unfinished, err := apply.Unfinished(out)
	testmodel.OK(t, err)
	if string(testplan.Encoded(t, unfinished)) != string(testplan.Encoded(t, p)) {
		t.Error("the unfinished plan is another")
	}
	before := testmodel.Files(t, out+apply.PartialSuffix)
	_, err = transform.Apply(t.Context(), m, testplan.Make(t, m, "round=3", 0), out, transform.ApplyOptions{Resume: true})
	testmodel.WantError(t, err, out+apply.PartialSuffix, "was begun with another plan")
	testmodel.SameFiles(t, testmodel.Files(t, out+apply.PartialSuffix), before)
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true}) // the call that returned an error holds no lock
	testmodel.OK(t, err)
	if unfinished, err := apply.Unfinished(out); unfinished != nil || err != nil {
		t.Errorf("unfinished: %v, %v", unfinished, err)
	}
}

func TestResumeWithNothingBegun(t *testing.T) {
	m, p := staged(t)
	out := filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	testmodel.OK(t, err)
	testmodel.SameFiles(t, testmodel.Files(t, out), testmodel.Files(t, testplan.Applied(t, m, nil, p)))
}

// TestJournalCutShort: after any cut of the journal, resuming gives the same bytes.
func TestJournalCutShort(t *testing.T) {
	m, p := staged(t)
	want := testmodel.Files(t, testplan.Applied(t, m, nil, p))
	journal := testmodel.Files(t, stopped(t, m, p)+apply.PartialSuffix)[apply.JournalName]
	if strings.Count(journal, "\n") < 2 {
		t.Fatal("no shard was finished")
	}
	end := strings.IndexByte(journal, '\n') + 1
	for _, length := range []int{0, 1, end - 1, end, end + 5, len(journal) - 1} {
		out := stopped(t, m, p)
		testmodel.OK(t, os.Truncate(filepath.Join(out+apply.PartialSuffix, apply.JournalName), int64(length)))
		testmodel.OK(t, os.WriteFile(filepath.Join(out+apply.PartialSuffix, "left over"), nil, 0o666))
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
		testmodel.OK(t, err)
		testmodel.SameFiles(t, testmodel.Files(t, out), want)
	}
	out := stopped(t, m, p)
	testmodel.OK(t, os.WriteFile(filepath.Join(out+apply.PartialSuffix, apply.JournalName), []byte("{}\n"), 0o666))
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	testmodel.WantError(t, err, apply.JournalName, "invalid plan")

	// A recorded shard that is missing is written again.
	out = stopped(t, m, p)
	testmodel.OK(t, os.Remove(filepath.Join(out+apply.PartialSuffix, filepath.Base(m.Shards[0].Path))))
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	testmodel.OK(t, err)
	testmodel.SameFiles(t, testmodel.Files(t, out), want)
}

// childEnv is the environment variable that makes this test's binary run one conversion as a child process.
const childEnv = "LOWTOGGLE_TEST_CONVERT"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		if err := convertAsChild(strings.Split(job, "\n")); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// convertAsChild applies a plan and waits after some events, so that the test can kill it at that point.
func convertAsChild(job []string) error {
	model, path, out := job[0], job[1], job[2]
	pause, _ := strconv.ParseInt(job[3], 10, 64)
	m, err := weights.Open(model)
	if err != nil {
		return err
	}
	p, err := plan.Read(path)
	if err != nil {
		return err
	}
	if err := limitChild(job[4]); err != nil {
		return err
	}
	var seen atomic.Int64
	_, err = transform.Apply(context.Background(), m, p, out, transform.ApplyOptions{Progress: func(transform.Event) {
		if seen.Add(1) == pause {
			os.Stdout.WriteString("paused\n")
			time.Sleep(time.Minute)
		}
	}})
	return err
}

// child prepares a conversion in a separate process.
func child(t *testing.T, m *weights.Model, p *plan.Plan, out string, pause int, limit string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.json")
	testmodel.OK(t, os.WriteFile(path, testplan.Encoded(t, p), 0o666))
	self, err := os.Executable()
	testmodel.OK(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{m.Dir, path, out, strconv.Itoa(pause), limit}, "\n"))
	return cmd
}

// paused starts a child and returns when the child waits.
func paused(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	testmodel.OK(t, err)
	testmodel.OK(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var line [7]byte
	if _, err := pipe.Read(line[:]); err != nil {
		t.Fatalf("the child ended: %v", err)
	}
}

func TestKillThenResume(t *testing.T) {
	m, p := staged(t)
	want := testmodel.Files(t, testplan.Applied(t, m, nil, p))
	for _, pause := range []int{1, 7, 12, 20} {
		out := filepath.Join(t.TempDir(), "out")
		cmd := child(t, m, p, out, pause, "")
		paused(t, cmd)
		if runtime.GOOS == "linux" { // its lock excludes other processes
			_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
			testmodel.WantError(t, err, out+apply.PartialSuffix, "another conversion is writing this folder")
		}
		testmodel.OK(t, cmd.Process.Kill())
		cmd.Wait()
		if _, err := os.Lstat(out); err == nil {
			t.Fatal("a half output lies under the final name")
		}
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
		testmodel.OK(t, err)
		testmodel.SameFiles(t, testmodel.Files(t, out), want)
		if entries, _ := os.ReadDir(filepath.Dir(out)); len(entries) != 1 {
			t.Errorf("%v are left", entries)
		}
	}
}
