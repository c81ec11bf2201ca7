package pattern

import "testing"

// BenchmarkGenerate generates every operation's example on one core.
func BenchmarkGenerate(b *testing.B) {
	for _, o := range operations {
		if o.Name == "tensor" {
			continue
		}
		p := MustParse(o.Example)
		for _, d := range types {
			b.Run(o.Name+"/"+d.String(), func(b *testing.B) {
				const n = 2048
				s := Spec{DType: d, Rows: n, Cols: n, Seed: 1}
				for b.Loop() {
					if _, err := p.Generate(b.Context(), s, 1); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)*n*float64(b.N)/b.Elapsed().Seconds()/1e6, "Melem/s")
			})
		}
	}
}
