package transform

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

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// staged is a model in several shards and a plan that changes all of them.
func staged(t *testing.T) (*weights.Model, *Plan) {
	t.Helper()
	m := open(t, folder(t, config(t, "llama-tiny", ""), synth.Options{ShardBytes: 25_000}))
	if len(m.Shards) < 5 {
		t.Fatalf("%d shards", len(m.Shards))
	}
	return m, makePlan(t, m, "reorder,shift=4/epilogue,round=2", 0)
}

func TestOutputThatCannotBeMade(t *testing.T) {
	m, p := staged(t)
	tmp := t.TempDir()
	there := filepath.Join(tmp, "there")
	ok(t, os.Mkdir(there, 0o777))
	begun := filepath.Join(tmp, "begun")
	ok(t, os.Mkdir(begun+partialSuffix, 0o777))
	link := filepath.Join(tmp, "link")
	ok(t, os.Symlink(m.Dir, link))
	dangling := filepath.Join(tmp, "dangling")
	ok(t, os.Symlink("nowhere", dangling))
	before := files(t, m.Dir)
	for _, c := range []struct{ out, want string }{
		{there, "exists already: name a new folder"},
		{dangling, "exists already"},
		{begun, "an unfinished conversion lies there: go on with --resume, or remove it"},
		{filepath.Join(m.Dir, "out"), "lies inside the model's folder"},
		{filepath.Join(m.Dir, "onnx", "out"), "lies inside the model's folder"},
		{filepath.Join(link, "out"), "lies inside the model's folder"},
		{filepath.Join(tmp, "nowhere", "out"), "no such file"},
		{m.Dir, "exists already"},
	} {
		_, err := Apply(t.Context(), m, p, c.out, ApplyOptions{})
		wantError(t, err, c.want)
	}
	_, err := Apply(t.Context(), m, p, begun, ApplyOptions{})
	if !errors.Is(err, ErrUnfinished) {
		t.Errorf("error %v is not of class ErrUnfinished", err)
	}
	sameFiles(t, files(t, m.Dir), before)
	if got := files(t, there); len(got) != 0 {
		t.Errorf("%v were written", got)
	}
}

// A folder that holds nothing but its weights is a folder all the same; a single file is none.
func TestOutputInsideAFolderOfOneFile(t *testing.T) {
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
	for _, name := range []string{"config.json", "tokenizer.json", "onnx"} {
		ok(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	m := open(t, dir)
	wantError(t, CheckOut(m, filepath.Join(dir, "out"), false), "lies inside the model's folder")
	ok(t, CheckOut(open(t, m.Shards[0].Path), filepath.Join(dir, "out"), false))
}

func TestAnUnfinishedConversionIsNoModel(t *testing.T) {
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
	ok(t, os.WriteFile(filepath.Join(dir, journalName), nil, 0o666))
	m := open(t, dir)
	_, err := Apply(t.Context(), m, planOf(t, m), filepath.Join(t.TempDir(), "out"), ApplyOptions{})
	wantError(t, err, "is an unfinished conversion itself")
}

func TestNoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	m, p := staged(t)
	tmp := filepath.Join(t.TempDir(), "sealed")
	ok(t, os.Mkdir(tmp, 0o555))
	_, err := Apply(t.Context(), m, p, filepath.Join(tmp, "out"), ApplyOptions{})
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
}

// interrupted runs Apply until the n-th progress event and cancels there. It reports whether that
// was before the end.
func interrupted(t *testing.T, m *weights.Model, p *Plan, out string, n int64, resume bool) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen atomic.Int64
	_, err := Apply(ctx, m, p, out, ApplyOptions{Resume: resume, Progress: func(Event) {
		if seen.Add(1) == n {
			cancel()
		}
	}})
	if err == nil {
		return false
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	wantError(t, err, out+partialSuffix, "--resume")
	if _, err := os.Lstat(out); err == nil {
		t.Fatal("a half output lies under the final name")
	}
	return true
}

func TestCancelAnywhereThenResume(t *testing.T) {
	m, p := staged(t)
	want := files(t, applied(t, m, p))
	for n := int64(1); ; n++ {
		out := filepath.Join(t.TempDir(), "out")
		if !interrupted(t, m, p, out, n, false) {
			if n < 10 {
				t.Errorf("only %d events", n)
			}
			break
		}
		if n%3 == 0 { // twice
			interrupted(t, m, p, out, 2, true)
		}
		_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
		ok(t, err)
		sameFiles(t, files(t, out), want)
		if _, err := os.Lstat(out + partialSuffix); err == nil {
			t.Fatal("parts are left")
		}
	}
}

// stopped leaves an unfinished conversion behind.
func stopped(t *testing.T, m *weights.Model, p *Plan) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	if !interrupted(t, m, p, out, 20, false) {
		t.Fatal("it was finished before it was cancelled")
	}
	return out
}

func TestResumeIsOnlyForTheSamePlan(t *testing.T) {
	m, p := staged(t)
	out := stopped(t, m, p)
	unfinished, err := Unfinished(out)
	ok(t, err)
	if string(encoded(t, unfinished)) != string(encoded(t, p)) {
		t.Error("the unfinished plan is another")
	}
	before := files(t, out+partialSuffix)
	_, err = Apply(t.Context(), m, makePlan(t, m, "round=3", 0), out, ApplyOptions{Resume: true})
	wantError(t, err, out+partialSuffix, "was begun with another plan")
	sameFiles(t, files(t, out+partialSuffix), before)
	_, err = Apply(t.Context(), m, p, out, ApplyOptions{Resume: true}) // the refused call holds no lock
	ok(t, err)
	if unfinished, err := Unfinished(out); unfinished != nil || err != nil {
		t.Errorf("unfinished: %v, %v", unfinished, err)
	}
}

func TestResumeWithNothingBegun(t *testing.T) {
	m, p := staged(t)
	out := filepath.Join(t.TempDir(), "out")
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
	ok(t, err)
	sameFiles(t, files(t, out), files(t, applied(t, m, p)))
}

// Whatever is left of a journal that was cut short, resuming ends with the same bytes.
func TestJournalCutShort(t *testing.T) {
	m, p := staged(t)
	want := files(t, applied(t, m, p))
	journal := files(t, stopped(t, m, p)+partialSuffix)[journalName]
	if strings.Count(journal, "\n") < 2 {
		t.Fatal("no shard was finished")
	}
	end := strings.IndexByte(journal, '\n') + 1
	for _, length := range []int{0, 1, end - 1, end, end + 5, len(journal) - 1} {
		out := stopped(t, m, p)
		ok(t, os.Truncate(filepath.Join(out+partialSuffix, journalName), int64(length)))
		ok(t, os.WriteFile(filepath.Join(out+partialSuffix, "left over"), nil, 0o666))
		_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
		ok(t, err)
		sameFiles(t, files(t, out), want)
	}
	out := stopped(t, m, p)
	ok(t, os.WriteFile(filepath.Join(out+partialSuffix, journalName), []byte("{}\n"), 0o666))
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
	wantError(t, err, journalName, "invalid plan")

	// A shard that is recorded and gone is made again.
	out = stopped(t, m, p)
	ok(t, os.Remove(filepath.Join(out+partialSuffix, filepath.Base(m.Shards[0].Path))))
	_, err = Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
	ok(t, err)
	sameFiles(t, files(t, out), want)
}

// Child processes are this test's binary, which does one conversion and nothing else.
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

// convertAsChild applies a plan and waits after some events, so that it can be killed there.
func convertAsChild(job []string) error {
	model, plan, out := job[0], job[1], job[2]
	pause, _ := strconv.ParseInt(job[3], 10, 64)
	m, err := weights.Open(model)
	if err != nil {
		return err
	}
	p, err := ReadPlan(plan)
	if err != nil {
		return err
	}
	if err := limitChild(job[4]); err != nil {
		return err
	}
	var seen atomic.Int64
	_, err = Apply(context.Background(), m, p, out, ApplyOptions{Progress: func(Event) {
		if seen.Add(1) == pause {
			os.Stdout.WriteString("paused\n")
			time.Sleep(time.Minute)
		}
	}})
	return err
}

// child prepares a conversion in a process of its own.
func child(t *testing.T, m *weights.Model, p *Plan, out string, pause int, limit string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.json")
	ok(t, os.WriteFile(path, encoded(t, p), 0o666))
	self, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{m.Dir, path, out, strconv.Itoa(pause), limit}, "\n"))
	return cmd
}

// paused starts a child and returns once it waits.
func paused(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var line [7]byte
	if _, err := pipe.Read(line[:]); err != nil {
		t.Fatalf("the child ended: %v", err)
	}
}

func TestKillThenResume(t *testing.T) {
	m, p := staged(t)
	want := files(t, applied(t, m, p))
	for _, pause := range []int{1, 7, 12, 20} {
		out := filepath.Join(t.TempDir(), "out")
		cmd := child(t, m, p, out, pause, "")
		paused(t, cmd)
		if runtime.GOOS == "linux" { // its lock keeps others away
			_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
			wantError(t, err, out+partialSuffix, "another process is writing it")
		}
		ok(t, cmd.Process.Kill())
		cmd.Wait()
		if _, err := os.Lstat(out); err == nil {
			t.Fatal("a half output lies under the final name")
		}
		_, err := Apply(t.Context(), m, p, out, ApplyOptions{Resume: true})
		ok(t, err)
		sameFiles(t, files(t, out), want)
		if entries, _ := os.ReadDir(filepath.Dir(out)); len(entries) != 1 {
			t.Errorf("%v are left", entries)
		}
	}
}
