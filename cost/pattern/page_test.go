package pattern

import (
	"bytes"
	"fmt"
	"testing"
)

const pageHead = `# Patterns

Generated from the table of operations by ` + "`go test ./cost/pattern -run Page -update`" + `.

A pattern is one line that says what bits a matrix has: a source, and steps behind it.

` + "```" + `
normal(0,0.02) | round(4) | sparse(0.5,block=16x16)
` + "```" + `

Arguments stand in the order below or behind their names, in any order: ` + "`sparse(share=50%,block=16x16)`" + `. Some
need their name, as in ` + "`random(low=4)`" + `; those with a default may be left out. Numbers are written as
` + "`0.02`, `1e-3`, `2^10` or `50%`" + `.

**Values.** From the source on, every element is of the matrix's type, one of F32, F16, BF16, F8_E4M3,
F8_E5M2 and I8. Arithmetic is done in double precision and rounded to the type: by way of float32, to
nearest, ties to even, the largest finite magnitude at most. In I8 values count integer steps. NaN and
infinity, which only a tensor can bring in, are left as they are by arithmetic; ` + "`flip` and `random`" + ` clear the
lowest exponent bit (in F8_E4M3 the lowest mantissa bit) of what would not be finite behind them.

**Randomness.** Every random decision is a hash of the seed, the operation's place in the pattern and the
element's row and column. The same pattern, type, shape and seed give the same bytes on every machine,
with any number of workers, in whole or in parts. A step that is added changes nothing before it.

**Cost.** Operations marked *whole* need at least the rows, and sort and reorder all of the matrix, for any
part of the result; with all others a part costs only the part.
`

// TestPage keeps docs/patterns.md what the table of operations says.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(pageHead)
	for _, source := range []bool{true, false} {
		fmt.Fprintf(&b, "\n## %s\n", map[bool]string{true: "Sources", false: "Steps"}[source])
		for _, o := range Operations() {
			if o.Source == source {
				pageEntry(&b, o)
			}
		}
	}
	sameFile(t, "../../docs/patterns.md", b.Bytes())
}

func pageEntry(b *bytes.Buffer, o Operation) {
	usage := ""
	for i, p := range o.Parameters {
		arg := p.Name
		if p.Named {
			arg += "=…"
		}
		if i > 0 {
			arg = "," + arg
		}
		if p.Default != "" {
			arg = "[" + arg + "]"
		}
		usage += arg
	}
	if usage != "" {
		usage = "(" + usage + ")"
	}
	usage = o.Name + usage
	fmt.Fprintf(b, "\n### %s\n\n`%s`", o.Name, usage)
	if o.wide != nil {
		fmt.Fprint(b, " · whole")
		if o.Name == "signs" {
			fmt.Fprint(b, ", but for random")
		}
	}
	fmt.Fprintf(b, "\n\n%s\n\n", o.Doc)
	for _, p := range o.Parameters {
		fmt.Fprintf(b, "- `%s`, %s", p.Name, p.Values())
		if p.Default != "" && !o.anyOf {
			fmt.Fprintf(b, " (%s unless given)", p.Default)
		}
		fmt.Fprintf(b, ": %s\n", p.Doc)
	}
	if o.anyOf {
		fmt.Fprintf(b, "\nAt least one is given; another is %s.\n", o.Parameters[0].Default)
	}
	if o.Parameters != nil {
		fmt.Fprintln(b)
	}
	fmt.Fprintf(b, "Example: `%s`\n", o.Example)
}
