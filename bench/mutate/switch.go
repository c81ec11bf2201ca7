package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// switchable is a package whose mutants can be compiled into one program. An environment variable chooses the mutant.
type switchable struct {
	folder   string
	set      *token.FileSet
	names    []string // paths of the files from the module's root
	sources  [][]byte
	trees    []*ast.File
	info     *types.Info
	pkg      *types.Package
	imported types.Importer
}

// load parses and checks a package. exports are the files of the packages that it imports.
func load(folder string, exports map[string]string) (*switchable, error) {
	p, err := build.Default.ImportDir(folder, 0)
	if err != nil {
		return nil, err
	}
	s := &switchable{folder: folder, set: token.NewFileSet()}
	s.imported = importer.ForCompiler(s.set, "gc", func(name string) (io.ReadCloser, error) {
		if exports[name] == "" {
			return nil, fmt.Errorf("no export data of %s", name)
		}
		return os.Open(exports[name])
	})
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		file := path.Join(folder, name)
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(s.set, file, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.names, s.sources, s.trees = append(s.names, file), append(s.sources, src), append(s.trees, tree)
	}
	s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	s.pkg, err = s.check(s.trees, s.info)
	return s, err
}

// check type-checks files of the package.
func (s *switchable) check(trees []*ast.File, info *types.Info) (*types.Package, error) {
	config := types.Config{Importer: s.imported, FakeImportC: true, Sizes: types.SizesFor("gc", build.Default.GOARCH)}
	return config.Check(s.folder, s.set, trees, info)
}

// accepts reports whether the package compiles with src in place of file at.
func (s *switchable) accepts(at int, src []byte) bool {
	tree, err := parser.ParseFile(s.set, s.names[at], src, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	trees := slices.Clone(s.trees)
	trees[at] = tree
	helper, err := parser.ParseFile(s.set, "switch", switchFile(s.pkg.Name()), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	_, err = s.check(append(trees, helper), nil)
	return err == nil
}

// edit is a change of a range of a file. It replaces the range by a text, or by a switch between the range and a mutant of
// it.
type edit struct {
	low, high int
	text      string // without a mutant
	mutant    *mutant
	number    int
	typ       string // type of the expression; empty: a statement
}

// place returns the smallest expression or statement that a switch to a mutant can replace; false if there is none.
func (s *switchable) place(at int, m *mutant, number int) (e edit, ok bool) {
	file := s.set.File(s.trees[at].Pos())
	var above []ast.Node
	var found ast.Node
	ast.Inspect(s.trees[at], func(n ast.Node) bool {
		if found != nil {
			return false
		}
		if n == nil {
			above = above[:len(above)-1]
			return false
		}
		above = append(above, n)
		if offset := func(p token.Pos) bool { return file.Offset(p) == m.offset }; s.isPlace(n, m, offset) {
			found = n
		}
		return found == nil
	})
	if found == nil {
		return e, false
	}
	for _, n := range above { // constants and types are not evaluated at run time
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.CONST {
				return e, false
			}
		case *ast.ArrayType, *ast.DeferStmt, *ast.GoStmt:
			return e, false
		}
	}
	above = above[:len(above)-1]
	e = edit{low: file.Offset(found.Pos()), high: file.Offset(found.End()), mutant: m, number: number}
	x, isExpr := found.(ast.Expr)
	if !isExpr {
		return e, true
	}
	for s.info.Types[x].Value != nil && len(above) > 0 { // x becomes the whole constant expression
		outer, ok := above[len(above)-1].(ast.Expr)
		if !ok || s.info.Types[outer].Value == nil {
			break
		}
		x, above = outer, above[:len(above)-1]
		e.low, e.high = file.Offset(x.Pos()), file.Offset(x.End())
	}
	tv := s.info.Types[x]
	if tv.Type == nil {
		return e, false
	}
	if tv.IsVoid() {
		return e, true
	}
	names := map[string]string{}
	for _, spec := range s.trees[at].Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		if names[name] = path.Base(name); spec.Name != nil {
			names[name] = spec.Name.Name
		}
	}
	e.typ = types.TypeString(types.Default(tv.Type), func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		return cmp.Or(names[p.Path()], p.Name())
	})
	return e, true
}

// isPlace reports whether a node is the place that a mutant changes.
func (s *switchable) isPlace(n ast.Node, m *mutant, at func(token.Pos) bool) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return m.Kind == "error" && at(n.Pos()) || n.Op.String() == m.Was && at(n.OpPos)
	case *ast.AssignStmt:
		return n.Tok.String() == m.Was && at(n.TokPos)
	case *ast.IncDecStmt:
		return n.Tok.String() == m.Was && at(n.TokPos)
	case *ast.BasicLit:
		return m.Kind == "constant" && at(n.Pos())
	case *ast.SelectorExpr:
		return m.Kind == "axis" && n.Sel.Name == m.Was && at(n.Sel.Pos())
	case *ast.CallExpr:
		return m.Kind == "axis" && slices.ContainsFunc(n.Args, func(a ast.Expr) bool { return at(a.Pos()) })
	}
	return false
}

// render returns a range of a source with edits, which lie in it and do not overlap unless one contains another.
func render(src []byte, low, high int, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(b.high, a.high), cmp.Compare(b.number, a.number))
	})
	var b strings.Builder
	for len(edits) > 0 {
		e := edits[0]
		n := 1
		for n < len(edits) && edits[n].low < e.high {
			n++
		}
		inner := edits[1:n]
		edits = edits[n:]
		b.Write(src[low:e.low])
		low = e.high
		if e.mutant == nil {
			b.WriteString(e.text)
			continue
		}
		from, to := e.mutant.offset, e.mutant.offset+len(e.mutant.Was)
		changed := []edit{{low: from, high: to, text: e.mutant.Becomes, number: -1}}
		for _, other := range inner {
			if outside, around := other.high <= from || other.low >= to, other.mutant != nil && other.low <= from && other.high >= to; outside || around {
				changed = append(changed, other)
			}
		}
		original, mutated := render(src, e.low, e.high, inner), render(src, e.low, e.high, changed)
		if e.typ == "" {
			fmt.Fprintf(&b, "func() { if mutantIsOn(%d) { %s } else { %s } }()", e.number, mutated, original)
		} else {
			fmt.Fprintf(&b, "func() %s { if mutantIsOn(%d) { return %s }; return %s }()", e.typ, e.number, mutated, original)
		}
	}
	b.Write(src[low:high])
	return b.String()
}

// environment is the variable with the number of the chosen mutant. With "reached FILE" no mutant is chosen, and the program
// appends the numbers of the mutants that it reaches to FILE.
const environment = "LOWTOGGLE_MUTANT"

// switchFile returns a source file with the switch of a package.
func switchFile(pkg string) string {
	return `package ` + pkg + `

import (
	mutantOS "os"
	mutantNumbers "strconv"
	mutantStrings "strings"
	mutantSync "sync"
)

var mutantOn, mutantReached = func() (int, string) {
	chosen := mutantOS.Getenv("` + environment + `")
	if file, ok := mutantStrings.CutPrefix(chosen, "reached "); ok {
		return -2, file
	}
	n, err := mutantNumbers.Atoi(chosen)
	if err != nil {
		n = -1
	}
	return n, ""
}()

var mutantsSeen mutantSync.Map

func mutantIsOn(n int) bool { return mutantOn == n || mutantOn == -2 && mutantNote(n) }

func mutantNote(n int) bool {
	if _, seen := mutantsSeen.LoadOrStore(n, true); !seen {
		f, err := mutantOS.OpenFile(mutantReached, mutantOS.O_APPEND|mutantOS.O_CREATE|mutantOS.O_WRONLY, 0o666)
		if err != nil {
			panic(err)
		}
		if _, err := f.WriteString(mutantNumbers.Itoa(n) + "\n"); err != nil {
			panic(err)
		}
		f.Close()
	}
	return false
}
`
}

// exports returns the files of export data of everything that packages import.
func exports(ctx context.Context, packages []string) (map[string]string, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "os", "strconv", "strings", "sync"} // the imports of switchFile
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, messages.Bytes())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[name] = file
	}
	return files, nil
}

// withSwitches writes source files in which every switchable mutant can be chosen by its index in the list, and the file list for
// go test -overlay. It returns the state of each mutant.
func withSwitches(ctx context.Context, folder string, list []mutant) (overlay string, state []mutantState, err error) {
	var packages []string
	for _, m := range list {
		if !slices.Contains(packages, m.Package) {
			packages = append(packages, m.Package)
		}
	}
	files, err := exports(ctx, packages)
	if err != nil {
		return "", nil, err
	}
	state = make([]mutantState, len(list))
	replace := map[string]string{}
	put := func(name, text string) error {
		to := filepath.Join(folder, fmt.Sprintf("%d.go", len(replace)))
		original, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		replace[original] = to
		return os.WriteFile(to, []byte(text), 0o666)
	}
	for _, pkg := range packages {
		s, err := load(pkg, files)
		if err != nil {
			return "", nil, err
		}
		switched := false
		for at, name := range s.names {
			var edits []edit
			for i := range list {
				m := &list[i]
				if m.File != name {
					continue
				}
				changed, err := m.apply()
				if err != nil {
					return "", nil, err
				}
				e, ok := s.place(at, m, i)
				switch src := s.sources[at]; {
				case !s.accepts(at, changed):
					state[i] = mutantInvalid
				case ok && s.accepts(at, []byte(render(src, 0, len(src), []edit{e}))):
					state[i] = mutantSwitched
					edits = append(edits, e)
				}
			}
			if edits == nil {
				continue
			}
			switched = true
			src := s.sources[at]
			text := render(src, 0, len(src), edits)
			if !s.accepts(at, []byte(text)) {
				return "", nil, fmt.Errorf("%s is invalid with all its mutants", name)
			}
			if err := put(name, text); err != nil {
				return "", nil, err
			}
		}
		if switched {
			if err := put(path.Join(pkg, "mutantswitch.go"), switchFile(s.pkg.Name())); err != nil {
				return "", nil, err
			}
		}
	}
	js, err := json.Marshal(map[string]any{"Replace": replace})
	overlay = filepath.Join(folder, "switches.json")
	return overlay, state, errors.Join(err, os.WriteFile(overlay, js, 0o666))
}

// mutantState is the way in which a mutant can be tested.
type mutantState int

const (
	mutantAlone    mutantState = iota // compiled alone
	mutantSwitched                    // compiled together with others, and chosen by a switch
	mutantInvalid                     // it does not compile
)
