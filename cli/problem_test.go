package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestProblem: an error's class depends on its types. Its place is the innermost one; for an output, the outermost.
func TestProblem(t *testing.T) {
	path := &fs.PathError{Op: "write", Path: "out/a", Err: syscall.ENOSPC}
	at := int64(7)
	var panicked error
	func() {
		defer recovered(io.Discard, &panicked)
		panic("a")
	}()
	for name, c := range map[string]struct {
		err  error
		want exit.Problem
	}{
		"none of the others": {errors.New("a"), exit.Problem{Class: exit.ClassFailed, Status: 1}},
		"usage":              {exit.Usagef("a"), exit.Problem{Class: exit.ClassUsage, Status: 2, Hint: "correct what the message names; lowtoggle convert --help lists the options"}},
		"shortfall":          {fmt.Errorf("%w: a", exit.ErrShort), exit.Problem{Class: exit.ClassShortfall, Status: 3}},
		"no GPU":             {fmt.Errorf("%w: a", cuda.ErrNoGPU), exit.Problem{Class: exit.ClassNoGPU, Status: 4}},
		"GPU":                {fmt.Errorf("%w: a", cuda.ErrOutOfMemory), exit.Problem{Class: exit.ClassGPU, Status: 1}},
		"interrupted":        {fmt.Errorf("a: %w", context.Canceled), exit.Problem{Class: exit.ClassInterrupted, Status: 1}},
		"server":             {fmt.Errorf("a: %w", serve.StatusError{Status: 520, Text: "b"}), exit.Problem{Class: exit.ClassServer, Status: 1}},
		"full disk":          {fmt.Errorf("%w: %w", path, apply.ErrUnfinished), exit.Problem{Class: exit.ClassIO, Status: 1, File: "out/a"}},
		"panic":              {panicked, exit.Problem{Class: exit.ClassInternal, Status: 1}},
		"no tokens":          {transform.ErrNoTokens, exit.Problem{Class: exit.ClassFailed, Status: 1, Hint: "give --tokens FILE"}},
		"innermost": {weights.FileErrorf("m", "%w", &weights.FormatError{File: "m/b", Tensor: "x", Offset: 7, Msg: "a"}),
			exit.Problem{Class: exit.ClassInput, Status: 1, File: "m/b", Tensor: "x", Offset: &at}},
		"tensor": {fmt.Errorf("a: %w", weights.TensorErrorf("m/b", "x", "a")), exit.Problem{Class: exit.ClassInput, Status: 1, File: "m/b", Tensor: "x"}},
		"joined": {errors.Join(errors.New("a"), weights.FileErrorf("b", "a"), weights.FileErrorf("c", "a")),
			exit.Problem{Class: exit.ClassInput, Status: 1, File: "b"}},
		"output": {exit.OutputExists(weights.FileErrorf("out", "%w", &fs.PathError{Op: "open", Path: "out/b", Err: syscall.ENOENT})),
			exit.Problem{Class: exit.ClassOutputExists, Status: 1, File: "out"}},
	} {
		have := problem(c.err, "convert")
		if have.Hint == "" || have.Message != told(c.err) {
			t.Errorf("%s: hint %q, message %q", name, have.Hint, have.Message)
		}
		if have.Message = ""; c.want.Hint == "" {
			have.Hint = ""
		}
		if diff := cmp.Diff(&c.want, have); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestHeldOutput: without a command's document, an error is a document of its own. With a document, the error is its
// last field. Other text does not change.
func TestHeldOutput(t *testing.T) {
	p := &exit.Problem{Class: exit.ClassInput, Message: "a < b", Hint: "h", Status: 1}
	const alone = "\"error\": {\n    \"class\": \"input\",\n    \"message\": \"a < b\",\n    \"hint\": \"h\",\n    \"status\": 1\n  }\n}\n"
	for text, want := range map[string]string{
		"":                   "{\n  " + alone,
		"{}\n":               "{\n  " + alone,
		"{\n  \"a\": 1\n}\n": "{\n  \"a\": 1,\n  " + alone,
		"USAGE }":            "USAGE }",
	} {
		file := filepath.Join(t.TempDir(), "out")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		out := exit.NewOutput(f)
		out.Hold()
		io.WriteString(out, text)
		err = out.Release(p)
		io.WriteString(out, "late")
		have, failed := os.ReadFile(file)
		if diff := cmp.Diff(want, string(have)); diff != "" || err != nil || failed != nil {
			t.Errorf("%q: %v, %v: %s", text, err, failed, diff)
		}
		f.Close()
	}
}

func TestWantsJSON(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"convert", "--json"}, true},
		{[]string{"convert", "-json=true", "m"}, true},
		{[]string{"convert", "--json=false"}, false},
		{[]string{"convert", "--", "--json"}, false},
		{nil, false},
	} {
		if have := wantsJSON(c.args); have != c.want {
			t.Errorf("%q: %v", c.args, have)
		}
	}
}
