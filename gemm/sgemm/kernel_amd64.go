//go:build !purego

package sgemm

import "golang.org/x/sys/cpu"

//go:generate go run -C _gen . -out ../kernel_amd64.s -stubs ../kernel_stub_amd64.go -pkg sgemm

// kernels are those that this machine can run, fastest first. Where the operating system does not
// keep the wide registers, package cpu reports nothing of AVX.
func kernels() []method {
	var all []method
	if cpu.X86.HasAVX512F {
		all = append(all, method{"AVX-512", tile512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, method{"AVX2", tile256})
	}
	return all
}

func tile512(c Matrix, a *rowPanel, b *colPanel, k int, add bool) { padded(c, a, b, k, add, true) }
func tile256(c Matrix, a *rowPanel, b *colPanel, k int, add bool) { padded(c, a, b, k, add, false) }

// padded is a tile by AVX-512 or AVX2. What juts out at an edge of c goes through a full tile beside it.
func padded(c Matrix, a *rowPanel, b *colPanel, k int, add, wide bool) {
	if c.Rows == tileRows && c.Cols == tileCols {
		full(c, a, b, k, add, wide)
		return
	}
	var data [tileRows * tileCols]float32
	t := Matrix{tileRows, tileCols, tileCols, data[:]}
	if add {
		for i := range c.Rows {
			copy(t.Row(i), c.Row(i))
		}
	}
	full(t, a, b, k, add, wide)
	for i := range c.Rows {
		copy(c.Row(i), t.Row(i))
	}
}

// full is a full tile, which AVX2 has registers for a quarter of.
func full(c Matrix, a *rowPanel, b *colPanel, k int, add, wide bool) {
	if wide {
		tile14x32(&c.Data[0], c.Stride, &a[0], &b[0][0], k, add)
		return
	}
	for j := 0; j < tileCols; j += 16 {
		for i := 0; i < tileRows; i += 7 {
			tile7x16(&c.Data[i*c.Stride+j], c.Stride, &a[i*rowStep], &b[0][j], k, add)
		}
	}
}
