//go:build !purego

package sgemm

import "golang.org/x/sys/cpu"

//go:generate go run -C _gen . -out ../kernel_amd64.s -stubs ../kernel_stub_amd64.go -pkg sgemm

// kernels returns the kernels that this machine can run, fastest first. If the operating system does not
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

func tile512(c []float32, stride, rows, cols int, a *rowPanel, b *colPanel, k int, add bool) {
	if rows == tileRows && cols == tileCols {
		tile14x32(&c[0], stride, &a[0], &b[0][0], k, add)
		return
	}
	var t [tileRows * tileCols]float32
	if add {
		widen(&t, c, stride, rows, cols)
	}
	tile14x32(&t[0], tileCols, &a[0], &b[0][0], k, add)
	narrow(c, stride, rows, cols, &t)
}

func tile256(c []float32, stride, rows, cols int, a *rowPanel, b *colPanel, k int, add bool) {
	if rows == tileRows && cols == tileCols {
		quarters(c, stride, a, b, k, add)
		return
	}
	var t [tileRows * tileCols]float32
	if add {
		widen(&t, c, stride, rows, cols)
	}
	quarters(t[:], tileCols, a, b, k, add)
	narrow(c, stride, rows, cols, &t)
}

// quarters computes a full tile by AVX2, which has no registers for more than a quarter of it.
func quarters(c []float32, stride int, a *rowPanel, b *colPanel, k int, add bool) {
	for j := 0; j < tileCols; j += 16 {
		for i := 0; i < tileRows; i += 7 {
			tile7x16(&c[i*stride+j], stride, &a[i*rowStep], &b[0][j], k, add)
		}
	}
}

// widen and narrow copy a tile at an edge of c to a full one and back.
func widen(t *[tileRows * tileCols]float32, c []float32, stride, rows, cols int) {
	for i := range rows {
		copy(t[i*tileCols:], c[i*stride:][:cols])
	}
}

func narrow(c []float32, stride, rows, cols int, t *[tileRows * tileCols]float32) {
	for i := range rows {
		copy(c[i*stride:][:cols], t[i*tileCols:])
	}
}
