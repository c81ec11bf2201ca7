package pattern

import (
	"bytes"
	"cmp"
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

const pageHead = `# How do I write a pattern?

Generated from the table of operations by ` + "`go test ./cost/pattern -run Page -update`" + `.

A pattern is one line of text that describes the bits of a matrix. The line has a source, followed by steps.

` + "```" + `
normal(0,0.02) | round(4) | sparse(0.5,block=16x16)
` + "```" + `

Give arguments in the order below, or by name in any order: ` + "`sparse(share=50%,block=16x16)`" + `. Some arguments
must be named, as in ` + "`random(low=4)`" + `. An argument with a default may be left out. Write numbers in one of the forms
` + "`0.02`, `1e-3`, `2^10` or `50%`" + `.

**Values.** Every element has the matrix's dtype, one of F32, F16, BF16, F8_E4M3, F8_E5M2 and I8.
Arithmetic is done in double precision. The result is rounded to float32 and then to the dtype. Each rounding is to the
nearest value, ties to even. A value beyond the dtype's range becomes the dtype's largest finite magnitude. I8 holds integers. Only the source
` + "`tensor`" + ` can give NaN and infinity; arithmetic does not change them. If ` + "`flip` or `random`" + ` would make
a value that is not finite, the step also clears the lowest exponent bit (in F8_E4M3 the lowest mantissa bit).

**Randomness.** Every random decision is a hash of the seed, the operation's position in the pattern and the
element's row and column. The same pattern, dtype, shape and seed give the same bytes on every machine.
The bytes do not depend on the number of workers, or on whether the matrix is computed in parts. If you append a step, the
random numbers of the steps before stay the same.

**Time.** Computing a part of a matrix takes time proportional to the part's size, with two exceptions. Operations marked *(whole rows)*
or *(whole columns)* compute every row or column of the part in full. Operations marked *(whole matrix)* compute the whole matrix.

**Your own steps.** A Go program adds a step by ` + "`pattern.Register`" + `: a function of an element's value
([library.md](library.md)). NaN and infinity stay unchanged, and the function is not called for them. A result beyond
the dtype's range becomes the dtype's largest finite magnitude. If the function returns NaN, computing the matrix fails with an error that
names the step and the value. Only the program that registers a step can use the step; the lowtoggle command cannot.

**To a file.** ` + "`lowtoggle pattern`" + ` writes the operands of y[M,N] = x[M,K]·w[N,K]ᵀ to a safetensors file, as the tensors x and w. Use
the file to measure kernels of your own:

` + "```" + `
lowtoggle pattern 'normal(0,0.02) | round(4)' --shape 4096x4096x8192 --dtype bf16 --seed 0 -o rounded.safetensors
` + "```" + `

` + "`lowtoggle measure --w 'normal(0,0.02) | round(4)'`" + ` with the same shape, type and seed multiplies the same operands. The seed of x is
the value of ` + "`--seed`" + `, and the seed of w is that value plus 1. The file's metadata has both patterns and the seed.

The command also writes a model's tensor: ` + "`lowtoggle pattern model.safetensors:lm_head.weight -o operands.safetensors`" + `. With
` + "`--dtype fp8` or `int8`" + `, a tensor of another type is multiplied by a power of two. The file's metadata has the exponents x_exponent and
w_exponent: divide y by 2^(x_exponent + w_exponent). Quantised weights cannot be written, because the file has no place for their scales.
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
		fmt.Fprintf(b, " (%s)", cmp.Or(map[string]string{"signs": "rows: whole rows; columns: whole columns", "sort": "whole matrix; by=within: whole rows", "reorder": "whole matrix"}[o.Name], "whole rows"))
	}
	fmt.Fprintf(b, "\n\n%s\n\n", o.Doc)
	if o.Parameters != nil {
		fmt.Fprint(b, "| argument | value | meaning |\n|---|---|---|\n")
	}
	for _, p := range o.Parameters {
		byDefault := ""
		if p.Default != "" && !o.anyOf {
			byDefault = fmt.Sprintf(" (default: %s)", p.Default)
		}
		fmt.Fprintf(b, "| `%s` | %s%s | %s |\n", p.Name, p.Values(), byDefault, p.Doc)
	}
	if o.anyOf {
		fmt.Fprintf(b, "\nGive at least one of the two arguments; the default of the other is %s.\n", o.Parameters[0].Default)
	}
	if o.Parameters != nil {
		fmt.Fprintln(b)
	}
	fmt.Fprintf(b, "Example: `%s`\n", o.Example)
}
