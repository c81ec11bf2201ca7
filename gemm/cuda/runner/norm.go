package runner

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// norm is a norm on the card. The zero value means no norm.
type norm struct {
	decoder.Norm
	weight, bias cuda.Address // float32; 0 if the norm does not have it
	spans        cuda.Address // first column of each span; 0: a single span from column 0
	count        int          // number of spans
	// wide is true if eight elements can be read at once, because width and spans are multiples of 8.
	wide bool
}

// maxWide is the largest width of normalize_wide.
const maxWide = 32 * 1024

func (l *loader) norm(ctx context.Context, n decoder.Norm) (norm, error) {
	on := norm{Norm: n, count: 1, wide: n.Width%8 == 0 && n.Width <= maxWide}
	if n.Missing() {
		return on, nil
	}
	plus := float32(0)
	if n.Kind == arch.RMSNorm1p {
		plus = 1
	}
	var err error
	if on.weight, err = l.vector(ctx, n.Weight, n.Width, plus); err != nil {
		return on, err
	}
	on.bias, err = l.vector(ctx, n.Bias, n.Width, 0)
	return on, err
}

// span loads a norm that is applied to spans of a row's columns.
func (l *loader) span(ctx context.Context, s decoder.SpanNorm) (norm, error) {
	n, err := l.norm(ctx, s.Norm)
	if err != nil {
		return n, err
	}
	n.count = len(s.Columns)
	for _, c := range s.Columns {
		n.wide = n.wide && c%8 == 0
	}
	n.spans, err = l.ints(toInt32(s.Columns))
	return n, err
}

// normalize queues y = norm(x), or y += scale·norm(x) if add is true.
func (p *pass) normalize(n norm, y, x cuda.Address, strideY, strideX int, add bool, scale float32) error {
	layer := 0
	if n.Kind == arch.LayerNorm {
		layer = 1
	}
	blocks := cuda.Grid{X: p.rows, Y: n.count}
	if n.wide && strideX%8 == 0 && strideY%8 == 0 && (x|y)%16 == 0 {
		block := cuda.Grid{X: min(1024, (n.Width/8+31)/32*32)}
		return p.kernels.normalizeWide.Launch(blocks, block, y, x, n.weight, n.bias, n.spans,
			n.Width, strideY, strideX, float32(n.Epsilon), layer, number(add), scale)
	}
	return p.kernels.normalize.Launch(blocks, cuda.Grid{X: threads}, y, x, n.weight, n.bias, n.spans,
		n.Width, strideY, strideX, float32(n.Epsilon), layer, number(add), scale)
}

// number converts a condition to a kernel argument: 1 for true and 0 for false.
func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func toInt32(v []int) []int32 {
	out := make([]int32, len(v))
	for i, x := range v {
		out[i] = int32(x)
	}
	return out
}
