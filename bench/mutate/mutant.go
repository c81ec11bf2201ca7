package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// mutant is a change of one place of a file.
type mutant struct {
	Package string `json:"package"`
	File    string `json:"file"` // relative to the module's root
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Kind    string `json:"kind"`
	Was     string `json:"was"`
	Becomes string `json:"becomes"`
	Text    string `json:"text"`          // the line before
	Nth     int    `json:"nth,omitempty"` // number among otherwise equal mutants of the file, from 0

	offset    int
	symmetric bool // swapped arguments of a symmetric function
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d:%d %s: %s becomes %s in %s", m.File, m.Line, m.Column, m.Kind, m.Was, m.Becomes, m.Text)
}

// same reports whether two mutants are the same change of the same place; line numbers may differ.
func (m mutant) same(o mutant) bool {
	return m.File == o.File && m.Text == o.Text && m.Column == o.Column && m.Was == o.Was && m.Becomes == o.Becomes && m.Nth == o.Nth
}

// compare orders mutants by file and place.
func (m mutant) compare(o mutant) int {
	return cmp.Or(cmp.Compare(m.File, o.File), cmp.Compare(m.Line, o.Line), cmp.Compare(m.Column, o.Column), cmp.Compare(m.Becomes, o.Becomes))
}

// apply returns the file with the change.
func (m mutant) apply() ([]byte, error) {
	src, err := os.ReadFile(m.File)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(src[m.offset:], []byte(m.Was)) {
		return nil, fmt.Errorf("%s has changed during the run", m.File)
	}
	return bytes.Join([][]byte{src[:m.offset], []byte(m.Becomes), src[m.offset+len(m.Was):]}, nil), nil
}

// operators has the replacements of each binary operator.
var operators = map[token.Token][]token.Token{
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.QUO},
	token.SHL: {token.SHR}, token.SHR: {token.SHL}, token.AND: {token.OR}, token.OR: {token.AND}, token.XOR: {token.OR}, token.AND_NOT: {token.AND},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN}, token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN},
	token.OR_ASSIGN: {token.AND_ASSIGN}, token.XOR_ASSIGN: {token.OR_ASSIGN}, token.SHL_ASSIGN: {token.SHR_ASSIGN}, token.SHR_ASSIGN: {token.SHL_ASSIGN},
}

// mutants returns the mutants of a package's files for this system.
func mutants(pkg string) (list []mutant, err error) {
	p, err := build.Default.ImportDir(pkg, 0)
	if err != nil {
		return nil, err
	}
	for _, name := range p.GoFiles {
		file := path.Join(pkg, name)
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := inFile(pkg, file, src)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// inFile returns the mutants of a source file. Generated files have none.
func inFile(pkg, file string, src []byte) (list []mutant, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(tree) {
		return nil, err
	}
	lines := strings.Split(string(src), "\n")
	add := func(kind string, at token.Pos, was, becomes string) {
		pos := set.Position(at)
		m := mutant{Package: pkg, File: file, Line: pos.Line, Column: pos.Column, Kind: kind, Was: was, Becomes: becomes, Text: strings.TrimSpace(lines[pos.Line-1]), offset: pos.Offset}
		for slices.ContainsFunc(list, m.same) {
			m.Nth++
		}
		list = append(list, m)
	}
	text := func(n ast.Node) string { return string(src[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset]) }
	operator := func(at token.Pos, op token.Token) {
		kind := "arithmetic"
		switch op {
		case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ, token.LAND, token.LOR:
			kind = "comparison"
		}
		for _, other := range operators[op] {
			add(kind, at, op.String(), other.String())
		}
	}
	without := map[ast.Node]bool{} // constants whose change has no effect
	ast.Inspect(tree, func(n ast.Node) bool {
		if x := withoutEffect(n); x != nil {
			without[x] = true
		}
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.StructType, *ast.ArrayType:
			return false
		case *ast.BinaryExpr:
			if isText(n.X) || isText(n.Y) {
				return false
			}
			if isNil(n.Y) && isErr(n.X) && n.Op == token.NEQ {
				add("error", n.Pos(), text(n), text(n)+" && false")
				return false
			}
			operator(n.OpPos, n.Op)
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 && isText(n.Rhs[0]) {
				return false
			}
			operator(n.TokPos, n.Tok)
		case *ast.IncDecStmt:
			if n.Tok == token.INC {
				add("arithmetic", n.TokPos, "++", "--")
			}
		case *ast.ReturnStmt:
			if besideError(n.Results) {
				return false
			}
		case *ast.BasicLit:
			if becomes := constant(n); becomes != "" && !without[n] {
				add("constant", n.Pos(), n.Value, becomes)
			}
		case *ast.CallExpr:
			if inMessage(n) {
				return false
			}
			for i := 1; i < len(n.Args); i++ {
				a, b := n.Args[i-1], n.Args[i]
				if simple(a) && simple(b) && text(a) != text(b) {
					whole := string(src[set.Position(a.Pos()).Offset:set.Position(b.End()).Offset])
					between := whole[len(text(a)) : len(whole)-len(text(b))]
					add("axis", a.Pos(), whole, text(b)+between+text(a))
					list[len(list)-1].symmetric = isSymmetric(n.Fun)
				}
			}
		case *ast.SelectorExpr:
			switch n.Sel.Name {
			case "Rows":
				add("axis", n.Sel.Pos(), "Rows", "Cols")
			case "Cols":
				add("axis", n.Sel.Pos(), "Cols", "Rows")
			}
		}
		return true
	})
	return list, nil
}

// withoutEffect returns the constant in an expression whose change no test can notice; nil if there is none. ParseFloat treats every
// size except 32 as 64. Inf and IsInf treat every number from 1 on as +∞. A map's size only reserves memory. Results do not depend on
// Workers, as tests of each package check.
func withoutEffect(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && isNamed(f.X, "strconv") && f.Sel.Name == "ParseFloat" && len(n.Args) == 2 {
			return n.Args[1]
		}
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && isNamed(f.X, "math") && (f.Sel.Name == "Inf" || f.Sel.Name == "IsInf") {
			if last, ok := n.Args[len(n.Args)-1].(*ast.BasicLit); ok && last.Value == "1" {
				return last
			}
		}
		if isNamed(n.Fun, "make") && len(n.Args) == 2 {
			if _, ok := n.Args[0].(*ast.MapType); ok {
				return n.Args[1]
			}
		}
	case *ast.KeyValueExpr:
		if isNamed(n.Key, "Workers") {
			return n.Value
		}
	}
	return nil
}

// constant returns another value for a number; empty if the literal is not a number.
func constant(n *ast.BasicLit) string {
	switch n.Kind {
	case token.INT:
		v, err := strconv.ParseInt(n.Value, 0, 64)
		if err != nil {
			return ""
		}
		return strconv.FormatInt(v+1, 10)
	case token.FLOAT:
		v, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			return ""
		}
		if v == 0 {
			return "1.0"
		}
		return "(" + n.Value + " * 1.25)"
	}
	return ""
}

// simple reports whether an expression is a name or a field. A programmer could swap such arguments by mistake.
func simple(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name != "nil" && e.Name != "true" && e.Name != "false"
	case *ast.SelectorExpr:
		return simple(e.X)
	}
	return false
}

// isSymmetric reports whether a function's value does not depend on the order of its arguments.
func isSymmetric(f ast.Expr) bool {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name == "min" || f.Name == "max"
	case *ast.SelectorExpr:
		return isNamed(f.X, "math") && f.Sel.Name == "Hypot" || isNamed(f.X, "strings") && f.Sel.Name == "EqualFold" || (isNamed(f.X, "bytes") || isNamed(f.X, "slices") || isNamed(f.X, "maps")) && f.Sel.Name == "Equal"
	}
	return false
}

func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

// besideError reports whether results are an error with numbers, nil and empty values, which callers ignore.
func besideError(results []ast.Expr) bool {
	if len(results) < 2 {
		return false
	}
	last := results[len(results)-1]
	call, isCall := last.(*ast.CallExpr)
	for _, r := range results[:len(results)-1] {
		_, number := r.(*ast.BasicLit)
		value, composite := r.(*ast.CompositeLit)
		if !number && !isNil(r) && !(composite && len(value.Elts) == 0) {
			return false
		}
	}
	return isErr(last) || isCall && inMessage(call)
}

func isErr(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "err"
}

// isText reports whether an expression is a string, so that + concatenates.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return isText(e.X) || isText(e.Y)
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "Sprintf"
	}
	return false
}

// inMessage reports whether a call makes a message, whose exact text tests do not check, or only reserves capacity.
func inMessage(n *ast.CallExpr) bool {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic" || f.Name == "bad" || f.Name == "make" && len(n.Args) == 3
	case *ast.SelectorExpr:
		return strings.HasSuffix(f.Sel.Name, "rrorf") || f.Sel.Name == "problem" || f.Sel.Name == "Note" || strings.HasPrefix(f.Sel.Name, "Sprint") || strings.HasPrefix(f.Sel.Name, "Fprint") || f.Sel.Name == "New" && isNamed(f.X, "errors")
	}
	return false
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
