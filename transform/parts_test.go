package transform_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// inParts returns options of parts with one version.
func inParts() transform.PartOptions {
	return transform.PartOptions{ApplyOptions: transform.ApplyOptions{Version: "1"}}
}

// partly is a model in shards, a plan for it, and the files of a single run.
type partly struct {
	m    *weights.Model
	p    *plan.Plan
	want map[string]string
}

func planned(t *testing.T, m *weights.Model, o transform.Options) partly {
	t.Helper()
	p, err := transform.Plan(t.Context(), m, o)
	ok(t, err)
	out := filepath.Join(t.TempDir(), "whole")
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	ok(t, err)
	return partly{m, p, files(t, out)}
}

// rounded returns a small model in BF16 and a plan that rounds it.
func rounded(t *testing.T) partly {
	t.Helper()
	m := open(t, folder(t, config(t, "llama-tiny", `{"num_hidden_layers": 1}`), synth.Options{ShardBytes: 30_000}))
	return planned(t, m, options(t, "round=2", 0))
}

func (x partly) part(out string, number, of int) (*apply.PartDone, error) {
	return transform.ApplyPart(context.Background(), x.m, x.p, out, apply.Part{Number: number, Of: of}, inParts())
}

func (x partly) all(t *testing.T, out string, of int) {
	t.Helper()
	for n := of; n >= 1; n-- {
		_, err := x.part(out, n, of)
		ok(t, err)
	}
}

func (x partly) finish(out string) error {
	_, _, err := transform.FinishParts(context.Background(), x.m, x.p, out, inParts())
	return err
}

// TestPartsGiveTheBytesOfOneRun: for any number of parts, in any order, with parts that are interrupted and run again.
func TestPartsGiveTheBytesOfOneRun(t *testing.T) {
	for name, x := range map[string]partly{
		"bf16":   planned(t, open(t, folder(t, config(t, "llama-tiny", ""), synth.Options{ShardBytes: 60_000})), options(t, "scale,reorder,signs,shift=4/epilogue,grid=16,round=2", 0)),
		"fp8":    planned(t, quantisedIn(t, "deepseek-fp8", synth.Options{Seed: 3, ShardBytes: 40_000}), options(t, "scales,round=1", 0)),
		"int4":   planned(t, quantisedIn(t, "int4=64", synth.Options{Seed: 3, ShardBytes: 40_000}), options(t, "scales=1,trellis=1", 0)),
		"format": planned(t, unquantised(t), formatOptions(t, "int4", "scales")),
	} {
		for _, of := range []int{1, 3, 7} {
			t.Run(fmt.Sprintf("%s in %d", name, of), func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "out")
				for n := of; n >= 1; n-- {
					ctx, cancel := context.WithCancel(t.Context())
					o := inParts()
					o.Progress = func(e transform.Event) {
						if e.Done > e.Total/2 {
							cancel()
						}
					}
					part := apply.Part{Number: n, Of: of}
					if _, err := transform.ApplyPart(ctx, x.m, x.p, out, part, o); err != nil && !errors.Is(err, apply.ErrTemporary) {
						t.Fatal(err)
					}
					cancel()
					for range 2 {
						_, err := x.part(out, n, of)
						ok(t, err)
					}
					if _, err := os.Lstat(out); err == nil {
						t.Fatal("the output exists before FinishParts")
					}
				}
				ok(t, x.finish(out))
				sameFiles(t, files(t, out), x.want)
				if _, err := os.Lstat(out + ".partial"); err == nil {
					t.Error("the folder of the parts is left")
				}
				ok(t, x.finish(out)) // again
				done, err := x.part(out, 1, of)
				if err != nil || !done.Whole {
					t.Errorf("a part of a finished output: %+v, error %v", done, err)
				}
			})
		}
	}
}

// TestPartsKeepWhatIsWritten: a second call of a part writes nothing, and finishing does not change the shards'
// files.
func TestPartsKeepWhatIsWritten(t *testing.T) {
	x, out := rounded(t), filepath.Join(t.TempDir(), "out")
	x.all(t, out, 2)
	shards := shardTimes(t, filepath.Join(out+".partial", "result"))
	done, err := x.part(out, 2, 2)
	ok(t, err)
	if done.Before != len(done.Shards) || done.Before == 0 {
		t.Errorf("%d of %d shards were kept", done.Before, len(done.Shards))
	}
	ok(t, x.finish(out))
	if now := shardTimes(t, out); !maps.Equal(now, shards) {
		t.Errorf("the shards were written at %v, then at %v", shards, now)
	}
}

func shardTimes(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	entries, err := os.ReadDir(dir)
	ok(t, err)
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".safetensors" {
			info, err := e.Info()
			ok(t, err)
			times[e.Name()] = info.ModTime()
		}
	}
	return times
}

// TestFinishRefusesWhatIsNotWritten: if parts are missing, cut short, edited or of another conversion, the error
// names them and no output appears. Running these parts again solves it.
func TestFinishRefusesWhatIsNotWritten(t *testing.T) {
	x := rounded(t)
	other := planned(t, x.m, options(t, "round=3", 0))
	strange := filepath.Join(t.TempDir(), "strange")
	other.all(t, strange, 3)
	for name, c := range map[string]struct {
		harm func(shard, record string) error
		want string
		late bool
	}{
		"no record":   {func(_, record string) error { return os.Remove(record) }, "is not written yet", false},
		"cut record":  {func(_, record string) error { return os.Truncate(record, 40) }, "the shard's record is damaged", false},
		"cut short":   {func(shard, _ string) error { return os.Truncate(shard, 1000) }, "has 1000 bytes, not the", false},
		"edited":      {func(shard, _ string) error { return overwrite(shard, -1) }, "was changed after it was written", false},
		"same time":   {func(shard, _ string) error { return editUnseen(shard) }, "was changed after it was written", false},
		"header":      {func(shard, _ string) error { return overwrite(shard, 20) }, "", false},
		"a folder":    {func(shard, _ string) error { return errors.Join(os.Remove(shard), os.Mkdir(shard, 0o777)) }, "is not a regular file", false},
		"vanished":    {func(shard, _ string) error { return os.Remove(shard) }, "is recorded as written, but is missing", true},
		"other plan":  {func(shard, record string) error { return swap(shard, record, strange+".partial") }, "was begun with another plan", false},
		"other shard": {func(shard, record string) error { return copyFile(filepath.Dir(record), record) }, "the shard's record belongs to another conversion", false},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			x.all(t, out, 3)
			shard := filepath.Join(out+".partial", "result", filepath.Base(x.m.Shards[1].Path))
			record := filepath.Join(out+".partial", "records", filepath.Base(shard)+".json")
			ok(t, c.harm(shard, record))
			err := x.finish(out)
			var parts *apply.PartsError
			if !errors.As(err, &parts) || len(parts.Parts) != 1 || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Base(shard)) {
				t.Fatalf("error %v", err)
			}
			if errors.Is(err, apply.ErrTemporary) != c.late {
				t.Errorf("temporary: %v", !c.late)
			}
			if _, err := os.Lstat(out); err == nil {
				t.Error("the output exists")
			}
			if name == "a folder" {
				ok(t, os.Remove(shard))
			}
			_, err = x.part(out, parts.Parts[0], 3)
			ok(t, err)
			ok(t, x.finish(out))
			sameFiles(t, files(t, out), x.want)
		})
	}
}

// overwrite changes the byte at an offset. A negative offset counts from the end.
func overwrite(path string, at int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[(at+len(data))%len(data)] ^= 1
	if err := os.WriteFile(path, data, 0o666); err != nil {
		return err
	}
	later := time.Now().Add(time.Minute) // clocks of file systems may be coarse
	return os.Chtimes(path, later, later)
}

// editUnseen changes a byte and keeps the file's size and time.
func editUnseen(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := overwrite(path, -1); err != nil {
		return err
	}
	return os.Chtimes(path, time.Time{}, info.ModTime())
}

// swap replaces a shard and its record by those of another conversion.
func swap(shard, record, from string) error {
	for _, path := range []string{shard, record} {
		data, err := os.ReadFile(filepath.Join(from, filepath.Base(filepath.Dir(path)), filepath.Base(path)))
		if err == nil {
			err = os.WriteFile(path, data, 0o666)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFile replaces a file by another file of its folder.
func copyFile(dir, path string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return e.Name() != filepath.Base(path) })
	data, err := os.ReadFile(filepath.Join(dir, entries[i].Name()))
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o666)
}

// TestFinishAcceptsCopies: shards with other times and equal bytes are read again and accepted.
func TestFinishAcceptsCopies(t *testing.T) {
	x, out := rounded(t), filepath.Join(t.TempDir(), "out")
	x.all(t, out, 2)
	later := time.Now().Add(time.Minute)
	for name := range shardTimes(t, filepath.Join(out+".partial", "result")) {
		ok(t, os.Chtimes(filepath.Join(out+".partial", "result", name), later, later))
	}
	ok(t, x.finish(out))
	sameFiles(t, files(t, out), x.want)
}

// TestFinishRefusesStrangers: a foreign file among the shards is an error, because it would be published.
func TestFinishRefusesStrangers(t *testing.T) {
	x, out := rounded(t), filepath.Join(t.TempDir(), "out")
	x.all(t, out, 2)
	stranger := filepath.Join(out+".partial", "result", "model-9.safetensors")
	ok(t, os.WriteFile(stranger, nil, 0o666))
	wantError(t, x.finish(out), stranger, "is not a file of this conversion")
	ok(t, os.Remove(stranger))
	ok(t, os.WriteFile(filepath.Join(out+".partial", "result", "."+plan.ManifestName+"123"), nil, 0o666)) // left by a killed call
	ok(t, x.finish(out))
	sameFiles(t, files(t, out), x.want)
}

// TestFinishGoesOnAfterAKill: after the renaming, the rest of the parts' folder is removed.
func TestFinishGoesOnAfterAKill(t *testing.T) {
	x, out := rounded(t), filepath.Join(t.TempDir(), "out")
	x.all(t, out, 2)
	kept := filepath.Join(t.TempDir(), "parts.json")
	ok(t, os.Link(filepath.Join(out+".partial", "parts.json"), kept))
	ok(t, x.finish(out))
	ok(t, os.Mkdir(out+".partial", 0o777))
	ok(t, os.Rename(kept, filepath.Join(out+".partial", "parts.json")))
	ok(t, x.finish(out))
	if _, err := os.Lstat(out + ".partial"); err == nil {
		t.Error("the folder of the parts is left")
	}
	ok(t, os.Mkdir(out+".partial", 0o777)) // a loss of power may have kept only this folder
	ok(t, x.finish(out))
	if _, err := os.Lstat(out + ".partial"); err == nil {
		t.Error("the empty folder of the parts is left")
	}
}

// TestPartsOfOthersAreRefused: parts of another plan, model, number of parts or version are errors. A conversion
// without parts is not continued in parts, and parts are not resumed as a whole.
func TestPartsOfOthersAreRefused(t *testing.T) {
	x, out := rounded(t), filepath.Join(t.TempDir(), "out")
	_, err := x.part(out, 1, 3)
	ok(t, err)
	_, err = x.part(out, 1, 4)
	wantError(t, err, "part 1/4", out+".partial", "was begun in 3 parts, not 4")
	if !errors.Is(err, apply.ErrOther) || errors.Is(err, apply.ErrTemporary) {
		t.Error("the same command would succeed")
	}
	other := planned(t, x.m, options(t, "round=3", 0))
	_, err = other.part(out, 2, 3)
	wantError(t, err, "part 2/3", "was begun with another plan")
	wantError(t, other.finish(out), "was begun with another plan")
	o := inParts()
	o.Version = "2"
	_, err = transform.ApplyPart(t.Context(), x.m, x.p, out, apply.Part{Number: 2, Of: 3}, o)
	wantError(t, err, "was begun by lowtoggle 1, and this is lowtoggle 2")
	model := partly{m: tiny(t, "gpt2-tiny", 0), p: x.p}
	if _, err = model.part(out, 2, 3); !errors.Is(err, plan.ErrInvalid) || errors.Is(err, apply.ErrTemporary) {
		t.Errorf("another model: %v", err)
	}
	for _, resume := range []bool{false, true} {
		_, err = transform.Apply(t.Context(), x.m, x.p, out, transform.ApplyOptions{Resume: resume})
		wantError(t, err, "holds a conversion in parts")
	}
	whole := filepath.Join(t.TempDir(), "out")
	ok(t, os.MkdirAll(whole+".partial", 0o777))
	ok(t, os.WriteFile(filepath.Join(whole+".partial", ".lowtoggle-journal"), nil, 0o666))
	_, err = x.part(whole, 1, 3)
	wantError(t, err, "begun without parts")
	ok(t, os.Rename(filepath.Join(whole+".partial", ".lowtoggle-journal"), filepath.Join(whole+".partial", "mine")))
	_, err = x.part(whole, 1, 3)
	wantError(t, err, "is not an unfinished conversion")
	wantError(t, x.finish(whole), "no part has been started there")
	for part, want := range map[apply.Part]string{
		{Number: 0, Of: 3}:                   "there is no part 0",
		{Number: 4, Of: 3}:                   "there is no part 4",
		{Number: 1, Of: 0}:                   "the number of parts is 0",
		{Number: 1, Of: apply.MostParts + 1}: "the number of parts is ",
	} {
		_, err = x.part(out, part.Number, part.Of)
		wantError(t, err, want)
	}
	ok(t, os.Mkdir(filepath.Join(filepath.Dir(out), "taken"), 0o777))
	_, err = x.part(filepath.Join(filepath.Dir(out), "taken"), 1, 3)
	wantError(t, err, "exists already")
}

// TestPartBeginsBesideAnother: a part that finds a folder which another machine is creating may be run again, and
// loses nothing.
func TestPartBeginsBesideAnother(t *testing.T) {
	x, out := rounded(t), filepath.Join(t.TempDir(), "out")
	_, err := x.part(out, 1, 2)
	ok(t, err)
	shared, away := filepath.Join(out+".partial", "parts.json"), filepath.Join(filepath.Dir(out), "parts.json")
	ok(t, os.Rename(shared, away))
	_, err = x.part(out, 2, 2)
	wantError(t, err, "part 2/2", "parts.json is not visible yet")
	if !errors.Is(err, apply.ErrTemporary) {
		t.Error("this error is not temporary")
	}
	ok(t, os.Rename(away, shared))
	_, err = x.part(out, 2, 2)
	ok(t, err)
	ok(t, x.finish(out))
	sameFiles(t, files(t, out), x.want)
}

// TestPartTwiceAtOnce: the second call is an error, and may be run again.
func TestPartTwiceAtOnce(t *testing.T) {
	x, out := rounded(t), filepath.Join(t.TempDir(), "out")
	_, err := x.part(out, 2, 3)
	ok(t, err)
	held, err := lock.Acquire(filepath.Join(out+".partial", "part-2", "lock"))
	ok(t, err)
	_, err = x.part(out, 2, 3)
	wantError(t, err, "part 2/3", "another process is writing this part")
	if !errors.Is(err, apply.ErrTemporary) {
		t.Error("this error is not temporary")
	}
	_, err = x.part(out, 1, 3)
	ok(t, err)
	ok(t, held.Close())
	_, err = x.part(out, 2, 3)
	ok(t, err)
}

// TestTemporary lists errors after which the same part may succeed.
func TestTemporary(t *testing.T) {
	at := func(path string, err error) error {
		return fmt.Errorf("x: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{at("a", syscall.ENOSPC), true}, {at("a", syscall.EIO), true}, {at("a", syscall.ESTALE), true}, {at("a", syscall.EDQUOT), true},
		{context.Canceled, true}, {fmt.Errorf("a: %w", weights.ErrFault), true},
		{at("out.partial/records", syscall.ENOENT), true}, {at("out.partial", syscall.ENOENT), true},
		{&os.LinkError{Op: "rename", Old: "out.partial/a", New: "out.partial/b", Err: syscall.ENOENT}, true},
		{at("out.partially", syscall.ENOENT), false}, {at("model", syscall.ENOENT), false}, {at("a", syscall.EACCES), false},
		{at("a", syscall.EROFS), false}, {plan.ErrInvalid, false}, {nil, false},
	} {
		got := apply.Temporary(c.err, "out.partial")
		if errors.Is(got, apply.ErrTemporary) != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v: %v", c.err, got)
		}
	}
	x, out := rounded(t), filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := transform.ApplyPart(ctx, x.m, x.p, out, apply.Part{Number: 1, Of: 1}, inParts())
	if !errors.Is(err, apply.ErrTemporary) || !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted part: %v", err)
	}
}

// TestPartsWithAnAdapter: an adapter belongs to one part. A replaced adapter is an error.
func TestPartsWithAnAdapter(t *testing.T) {
	m := withLoRA(t, config(t, "llama-tiny", testmodel.QuantisedShape), always)
	x := planned(t, m, options(t, "reorder", 0))
	out := filepath.Join(t.TempDir(), "out")
	x.all(t, out, 2)
	whole, err := os.ReadFile(m.Adapter.Path)
	ok(t, err)
	ok(t, overwrite(m.Adapter.Path, -1))
	wantError(t, x.finish(out), "another adapter")
	ok(t, os.WriteFile(m.Adapter.Path, whole, 0o666))
	ok(t, x.finish(out))
	sameFiles(t, files(t, out), x.want)
}
