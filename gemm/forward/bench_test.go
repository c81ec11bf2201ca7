package forward_test

import (
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

func BenchmarkRun(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "model")
	if err := demo.Write(dir); err != nil {
		b.Fatal(err)
	}
	m, d := open(b, dir)
	file, err := tokens.Open(tokens.Path(dir))
	if err != nil {
		b.Fatal(err)
	}
	p := file.Parts[0]
	for b.Loop() {
		run(b, d, forward.Stored(m), p.Sequences)
	}
	b.ReportMetric(float64(p.N*p.T*b.N)/b.Elapsed().Seconds(), "tokens/s")
}
