package pattern

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// drawPattern draws a source and up to four steps of the table, with arguments of all kinds, but no tensor.
func drawPattern(t *rapid.T) Pattern {
	sources, steps := []*Operation{}, []*Operation{}
	for _, o := range operations {
		switch {
		case o.Name == "tensor":
		case o.Source:
			sources = append(sources, o)
		default:
			steps = append(steps, o)
		}
	}
	text := drawCall(t, rapid.SampledFrom(sources).Draw(t, "source"))
	for range rapid.IntRange(0, 4).Draw(t, "steps") {
		text += "|" + drawCall(t, rapid.SampledFrom(steps).Draw(t, "step"))
	}
	p, err := Parse(text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

func drawCall(t *rapid.T, o *Operation) string {
	var args []string
	for _, p := range o.Parameters {
		if p.Default != "" && !(o.anyOf && args == nil) && rapid.Bool().Draw(t, "default") {
			continue
		}
		args = append(args, p.Name+"="+drawValue(t, o, p))
	}
	args = rapid.Permutation(args).Draw(t, "order")
	return o.Name + "(" + strings.Join(args, ",") + ")"
}

func drawValue(t *rapid.T, o *Operation, p Parameter) string {
	least, most := max(p.Min, -100), min(p.Max, 100)
	switch p.Kind {
	case Number:
		if o.Name == "uniform" {
			least, most = min(least, 0), max(least, 0)
			if p.Name == "high" {
				least, most = 0, 100
			}
		}
		return formatNumber(rapid.Float64Range(least, most).Draw(t, p.Name))
	case Integer:
		return fmt.Sprint(rapid.IntRange(int(least), min(int(most), 8)).Draw(t, p.Name))
	case Word:
		return rapid.SampledFrom(p.Words).Draw(t, p.Name)
	case Shape:
		return fmt.Sprintf("%dx%d", rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "columns"))
	}
	nested := slices.DeleteFunc(slices.Clone(operations), func(o *Operation) bool { return o.draw == nil })
	return drawCall(t, rapid.SampledFrom(nested).Draw(t, p.Name))
}

// types are all types that patterns support.
var types = []weights.DType{weights.F32, weights.F16, weights.BF16, weights.F8E4M3, weights.F8E5M2, weights.I8}

func drawSpec(t *rapid.T) Spec {
	return Spec{
		DType: rapid.SampledFrom(types).Draw(t, "type"),
		Rows:  rapid.IntRange(0, 24).Draw(t, "matrix rows"),
		Cols:  rapid.IntRange(0, 24).Draw(t, "matrix columns"),
		Seed:  rapid.Uint64().Draw(t, "seed"),
	}
}

func drawRange(t *rapid.T, n int, what string) Range {
	from := rapid.IntRange(0, n).Draw(t, what+" from")
	return Range{from, rapid.IntRange(from, n).Draw(t, what+" to")}
}
