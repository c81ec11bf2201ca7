package pattern

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

const pageHead = `# How do I write a pattern?

Generated from the table of operations by ` + "`go test ./cost/pattern -run Page -update`" + `.

A pattern is one line that describes the bits of a matrix: a source, followed by steps.

` + "```" + `
normal(0,0.02) | round(4) | sparse(0.5,block=16x16)
` + "```" + `

Give arguments in the order below, or by name in any order: ` + "`sparse(share=50%,block=16x16)`" + `. Some arguments
must be named, as in ` + "`random(low=4)`" + `. An argument with a default may be left out. Numbers are written as
` + "`0.02`, `1e-3`, `2^10` or `50%`" + `.

**Values.** Every element has the matrix's dtype, one of F32, F16, BF16, F8_E4M3, F8_E5M2 and I8.
Arithmetic is done in double precision. The result is rounded to float32 and then to the dtype, to nearest, ties
to even. A value beyond the dtype's range becomes its largest finite magnitude. I8 holds integers. Only a tensor can
contain NaN and infinity, and arithmetic does not change them. Where ` + "`flip` or `random`" + ` would make
a value that is not finite, they clear its lowest exponent bit (in F8_E4M3 its lowest mantissa bit).

**Randomness.** Every random decision is a hash of the seed, the operation's position in the pattern and the
element's row and column. The same pattern, dtype, shape and seed give the same bytes on every machine,
with any number of workers, whether the matrix is made in one piece or in parts. An added step does not change the
steps before it.

**Time.** Operations marked *whole* compute whole rows for any part of the result. ` + "`sort` and `reorder`" + ` compute the
whole matrix. For all other operations, the time is proportional to the size of the part.

**Your own steps.** A Go program adds a step by ` + "`pattern.Register`" + `: a function of an element's value
([library.md](library.md)). Values that are not finite do not reach the function and stay as they are. A result beyond the dtype's
range becomes its largest finite magnitude. NaN is no such result: the matrix is not made, and the error names the step and the value.
The step belongs to the program that registers it: the lowtoggle command does not know it.
`

// TestPage checks that docs/patterns.md agrees with the table of operations.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(pageHead)
	for _, source := range []bool{true, false} {
		fmt.Fprintf(&b, "\n## %s\n", map[bool]string{true: "Sources", false: "Steps"}[source])
		for _, o := range operations {
			if o.Source == source {
				pageEntry(&b, *o)
			}
		}
	}
	goldenfile.Same(t, "../../docs/patterns.md", b.Bytes())
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
			fmt.Fprint(b, ", except with random")
		}
	}
	fmt.Fprintf(b, "\n\n%s\n\n", o.Doc)
	for _, p := range o.Parameters {
		fmt.Fprintf(b, "- `%s`, %s", p.Name, p.Values())
		if p.Default != "" && !o.anyOf {
			fmt.Fprintf(b, " (default: %s)", p.Default)
		}
		fmt.Fprintf(b, ": %s\n", p.Doc)
	}
	if o.anyOf {
		fmt.Fprintf(b, "\nAt least one is required; the default of the other is %s.\n", o.Parameters[0].Default)
	}
	if o.Parameters != nil {
		fmt.Fprintln(b)
	}
	fmt.Fprintf(b, "Example: `%s`\n", o.Example)
}
