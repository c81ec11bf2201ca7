//go:build unix

package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/internal/htmlcheck"
	"github.com/lowtoggle/lowtoggle/weights"
)

// scriptCommands are the commands of scripts in addition to testscript's own.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"status":      scriptStatus,
	"refused":     scriptRefused,
	"patch":       scriptPatch,
	"truncate":    scriptTruncate,
	"setjson":     scriptSetJSON,
	"safetensors": scriptSafetensors,
	"excerpt":     scriptExcerpt,
	"tree":        scriptTree,
	"json":        scriptJSON,
	"width":       scriptWidth,
	"killat":      scriptKillAt,
	"tmpfs":       scriptTmpfs,
	"graft":       scriptGraft,
	"rename":      scriptRename,
	"retype":      scriptRetype,
	"html":        scriptHTML,
	"store":       scriptStore,
	"put":         scriptPut,
	"get":         scriptGet,
}

// need checks the number of arguments. If usage ends in "...", more arguments may follow.
func need(ts *testscript.TestScript, neg bool, args []string, usage string) {
	open := strings.HasSuffix(usage, "...")
	want := len(strings.Fields(strings.TrimSuffix(usage, "...")))
	if neg || len(args) < want || !open && len(args) > want {
		ts.Fatalf("usage: %s", usage)
	}
}

// exitCode returns the exit code of a command that ended by itself.
func exitCode(ts *testscript.TestScript, err error) int {
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() < 0 {
		ts.Fatalf("the command did not end by itself: %v", err)
	}
	return exit.ExitCode()
}

// scriptStatus is status N PROGRAM ARGS.... The program must end with status N.
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "N PROGRAM...")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if have := exitCode(ts, ts.Exec(args[1], args[2:]...)); have != want {
		ts.Fatalf("status %d, not %d", have, want)
	}
}

// scriptRefused is refused MESSAGE MODEL OUT FLAGS.... The conversion must fail with status 1 and exactly this
// message ("…" at its end stands for more text). It must write nothing and not change the model.
func scriptRefused(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "MESSAGE MODEL OUT ...")
	message, model, out := args[0], args[1], args[2]
	before := treeOf(ts, filepath.Dir(ts.MkAbs(model)))
	if status := exitCode(ts, ts.Exec("lowtoggle", append([]string{"convert"}, args[1:]...)...)); status != exit.Failed {
		ts.Fatalf("status %d, not %d", status, exit.Failed)
	}
	have, want := ts.ReadFile("stderr"), "lowtoggle: "+message
	if start, open := strings.CutSuffix(want, "…"); open {
		want, have = start, have[:min(len(have), len(start))]
	} else {
		want += "\n"
	}
	if have != want {
		ts.Fatalf("the message is\n%swhich should be\n%s", have, want)
	}
	if s := ts.ReadFile("stdout"); s != "" {
		ts.Fatalf("something stands on standard output: %s", s)
	}
	if _, err := os.Lstat(ts.MkAbs(out + ".partial")); err == nil {
		ts.Fatalf("%s.partial was left behind", out)
	}
	if after := treeOf(ts, filepath.Dir(ts.MkAbs(model))); after != before {
		ts.Fatalf("something was written; before:\n%safter:\n%s", before, after)
	}
}

// scriptHTML is html FILE TEXT.... The report must be well-formed, refer to no other file, have at most 1 MB, and
// contain every text.
func scriptHTML(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE ...")
	page := ts.ReadFile(args[0])
	if problems := htmlcheck.Check([]byte(page)); problems != nil {
		ts.Fatalf("%s: %s", args[0], strings.Join(problems, "\n"))
	}
	if len(page) > 1_000_000 {
		ts.Fatalf("%s: %d bytes", args[0], len(page))
	}
	for _, text := range args[1:] {
		if !strings.Contains(strings.ReplaceAll(html.UnescapeString(page), "\u00a0", " "), text) {
			ts.Fatalf("%s: no %q in it", args[0], text)
		}
	}
}

// scriptPatch is patch FILE OFFSET HEX, which overwrites bytes. A negative offset counts from the end.
func scriptPatch(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE OFFSET HEX")
	data := []byte(ts.ReadFile(args[0]))
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(data)
	}
	bytes, err := hex.DecodeString(args[2])
	ts.Check(err)
	copy(data[at:at+len(bytes)], bytes)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
}

// scriptTruncate is truncate FILE SIZE, which changes a file's size. A negative size is cut off the end.
func scriptTruncate(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE SIZE")
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	if size < 0 {
		st, err := os.Stat(ts.MkAbs(args[0]))
		ts.Check(err)
		size += st.Size()
	}
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

// scriptSetJSON is setjson FILE FIELD VALUE, which sets a field of an object. If VALUE is "-", it removes the field.
func scriptSetJSON(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE FIELD VALUE")
	var doc map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc))
	object, fields := doc, strings.Split(args[1], "/")
	for _, f := range fields[:len(fields)-1] {
		object = object[f].(map[string]any)
	}
	if last := fields[len(fields)-1]; args[2] == "-" {
		delete(object, last)
	} else {
		object[last] = json.RawMessage(args[2])
	}
	js, err := json.MarshalIndent(doc, "", "  ")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), js, 0o666))
}

// scriptSafetensors is safetensors FILE HEADER SIZE. It writes a file with the header in the file HEADER, padded with
// spaces to a multiple of 8 bytes, and SIZE bytes of zeros.
func scriptSafetensors(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE HEADER SIZE")
	size, err := strconv.Atoi(args[2])
	ts.Check(err)
	writeSafetensors(ts, args[0], args[1], make([]byte, size))
}

// scriptExcerpt is excerpt FILE HEADER FROM. It writes a file like safetensors, with the first bytes of FROM's data,
// as many as the header's tensors need.
func scriptExcerpt(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE HEADER FROM")
	f, err := weights.OpenFile(ts.MkAbs(args[2]))
	ts.Check(err)
	defer f.Close()
	var tensors map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &tensors))
	size := 0
	for _, x := range tensors {
		size = max(size, x.Offsets[1])
	}
	writeSafetensors(ts, args[0], args[1], f.Data()[:size])
}

func writeSafetensors(ts *testscript.TestScript, file, header string, data []byte) {
	head := strings.TrimSpace(ts.ReadFile(header))
	head += strings.Repeat(" ", -len(head)&7)
	all := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	ts.Check(os.WriteFile(ts.MkAbs(file), append(append(all, head...), data...), 0o666))
}

// scriptTree is tree DIR FILE. It writes the names and digests of all files in DIR to FILE.
func scriptTree(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "DIR FILE")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(treeOf(ts, ts.MkAbs(args[0]))), 0o666))
}

func treeOf(ts *testscript.TestScript, dir string) string {
	var b strings.Builder
	ts.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || !d.Type().IsRegular() {
			fmt.Fprintf(&b, "%s %s\n", d.Type(), rel)
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%x %s\n", sha256.Sum256(data), rel)
		return err
	}))
	return b.String()
}

// scriptJSON is json FILE FIELD.... FILE (or stdout) must be one JSON document without null that has the fields, with
// paths such as a/b/0/c. With "!", it must have none of the fields.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, false, args, "FILE ...")
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	var doc any
	ts.Check(dec.Decode(&doc))
	if err := dec.Decode(new(any)); err != io.EOF {
		ts.Fatalf("something follows the document")
	}
	if path, found := findNull("", doc); found {
		ts.Fatalf("%s is null", path)
	}
	for _, path := range args[1:] {
		if has := hasField(doc, strings.Split(path, "/")); has == neg {
			ts.Fatalf("field %s: there is %v", path, has)
		}
	}
}

func findNull(path string, v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return path, true
	case map[string]any:
		for name, field := range v {
			if p, found := findNull(path+"/"+name, field); found {
				return p, true
			}
		}
	case []any:
		for i, item := range v {
			if p, found := findNull(fmt.Sprintf("%s/%d", path, i), item); found {
				return p, true
			}
		}
	}
	return "", false
}

func hasField(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		field, ok := v[path[0]]
		return ok && hasField(field, path[1:])
	case []any:
		i, err := strconv.Atoi(path[0])
		return err == nil && i < len(v) && hasField(v[i], path[1:])
	}
	return false
}

// scriptWidth is width N. No line of standard output may be longer than N characters.
func scriptWidth(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "N")
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	out := ts.ReadFile("stdout")
	if out == "" {
		ts.Fatalf("nothing stands on standard output")
	}
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
			ts.Fatalf("%d characters: %s", n, line)
		}
	}
}

// scriptTmpfs is tmpfs DIR SIZE. It mounts a small disk until the script ends. The condition [tmpfs] is true if
// mounting is allowed.
func scriptTmpfs(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "DIR SIZE")
	dir := ts.MkAbs(args[0])
	ts.Check(os.Mkdir(dir, 0o777))
	ts.Check(mountTmpfs(dir, args[1]))
	ts.Defer(func() { exec.Command("umount", dir).Run() })
}

func mountTmpfs(dir, size string) error {
	return exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).Run()
}

func mayMount(dir string) bool {
	if mountTmpfs(dir, "1M") != nil {
		return false
	}
	return exec.Command("umount", dir).Run() == nil
}
