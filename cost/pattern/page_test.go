package pattern

import (
	"bytes"
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
nearest value, ties to even. A value beyond the dtype's range becomes its largest finite magnitude. I8 holds integers. Only a tensor can
contain NaN and infinity, and arithmetic does not change them. If ` + "`flip` or `random`" + ` would make
a value that is not finite, the step also clears the lowest exponent bit (in F8_E4M3 the lowest mantissa bit).

**Randomness.** Every random decision is a hash of the seed, the operation's position in the pattern and the
element's row and column. The same pattern, dtype, shape and seed give the same bytes on every machine.
The number of workers does not change the bytes, nor does computing the matrix in parts. If you add a step, the steps
before do not change.

**Time.** Operations marked *(whole rows)* compute whole rows for any part of the result. ` + "`sort` and `reorder`" + ` compute the
whole matrix. For all other operations, the time is proportional to the size of the part.

**Your own steps.** A Go program adds a step by ` + "`pattern.Register`" + `: a function of an element's value
([library.md](library.md)). The function does not get values that are not finite; such values stay unchanged. A result beyond
the dtype's range becomes the dtype's largest finite magnitude. If the function returns NaN, the matrix is not made: the error names the
step and the value. Only the program that registers a step knows the step; the lowtoggle command does not.

**To a file.** ` + "`lowtoggle pattern`" + ` writes the operands of y[M,N] = x[M,K]·w[N,K]ᵀ to a safetensors file, as the tensors x and w, for
kernels of your own:

` + "```" + `
lowtoggle pattern 'normal(0,0.02) | round(4)' --shape 4096x4096x8192 --dtype bf16 --seed 0 -o rounded.safetensors
` + "```" + `

` + "`lowtoggle measure --w 'normal(0,0.02) | round(4)'`" + ` with the same shape, type and seed multiplies these bytes. The seed of x is that of
` + "`--seed`" + `, and the seed of w is one more. The file's metadata has both patterns and the seed.

A tensor is written in the same way: ` + "`lowtoggle pattern model.safetensors:lm_head.weight`" + `. For fp8 and int8, tensors of other types are
multiplied by a power of two, and the file's metadata has its exponent, as x_exponent and w_exponent: divide y by 2 to the
power of their sum. Quantised weights cannot be written, because the file has no place for their scales.
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
		fmt.Fprint(b, " (whole rows")
		if o.Name == "signs" {
			fmt.Fprint(b, ", except with random")
		}
		fmt.Fprint(b, ")")
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
