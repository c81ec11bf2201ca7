//go:build !amd64 || purego

package vector

// vectors is false: this build has no vector kernels.
const vectors = false

func expScaled8(*float32, int, float32, float32, *uint64) { panic("no kernel") }
func silu8(*float32, *float32, int, *uint64)              { panic("no kernel") }
func gelu8(*float32, *float32, int, *uint64)              { panic("no kernel") }
func maximum16(*float32, int, *float32)                   { panic("no kernel") }
func rowSums8(*[8]*float32, int, *[8]float64)             { panic("no kernel") }
