package cuda

import (
	"encoding/binary"
	"fmt"
)

// Kernel identifies a kernel. A kernel of this module has a name. A kernel of cuBLASLt has the library's numbers for
// its algorithm and configuration, which are only comparable within one version of the library.
type Kernel struct {
	// Name is the name of a kernel of this module; empty for kernels of cuBLASLt.
	Name        string  `json:"name,omitempty"`
	M           int     `json:"m"` // the result D is [m,n], including padding
	N           int     `json:"n"`
	K           int     `json:"k"`
	Algorithm   int     `json:"algorithm"`
	Tile        int     `json:"tile"`
	Stages      int     `json:"stages"`
	SplitK      int     `json:"split_k"`
	Reduction   int     `json:"reduction"`
	Swizzle     int     `json:"swizzle"`
	Custom      int     `json:"custom"`
	Inner       int     `json:"inner_shape"`
	Cluster     int     `json:"cluster_shape"`
	Compute     int     `json:"compute_type"` // cublasComputeType_t
	TensorCores bool    `json:"tensor_cores"`
	Half        bool    `json:"half_accumulator"` // whether the kernel accumulates in float16
	Workspace   int64   `json:"workspace_bytes"`
	Waves       float64 `json:"waves"` // 1 means that the blocks fill the card once
}

// String returns a description of the kernel in one line.
func (k Kernel) String() string {
	if k.Name != "" {
		return fmt.Sprintf("lowtoggle's own kernel %s, split-K %d, tensor cores", k.Name, k.SplitK)
	}
	unit := "CUDA cores"
	if k.TensorCores {
		unit = "tensor cores"
	}
	return fmt.Sprintf("algorithm %d, tile %d, stages %d, split-K %d, cluster %d, custom %d, %s", k.Algorithm, k.Tile, k.Stages, k.SplitK, k.Cluster, k.Custom, unit)
}

// kernel returns the attributes of the heuristic's choice. Attributes that this version of the library does not have
// are 0.
func (a *api) kernel(s shape, compute int32, h *heuristic) Kernel {
	flags := a.implementation(h)
	k := Kernel{
		M: s.m, N: s.n, K: s.k, Compute: int(compute),
		// TF32 exists only on tensor cores, but the flags of TF32 kernels do not show tensor cores.
		TensorCores: flags&implTensorOps != 0 || compute == compute32FTF32, Half: flags&implAccumulate16 != 0,
		Workspace: int64(h.workspace), Waves: float64(h.waves),
	}
	for _, f := range []struct {
		to        *int
		attribute int32
		bytes     uint64
	}{
		{&k.Algorithm, configAlgorithm, 4}, {&k.Tile, configTile, 4}, {&k.SplitK, configSplitK, 4},
		{&k.Reduction, configReduction, 4}, {&k.Swizzle, configSwizzle, 4}, {&k.Custom, configCustom, 4},
		{&k.Stages, configStages, 4}, {&k.Inner, configInner, 2}, {&k.Cluster, configCluster, 2},
	} {
		value := make([]byte, 4)
		var written uint64
		if a.cublasLtAlgoConfigGet(&h.algo, f.attribute, &value[0], f.bytes, &written) == 0 {
			*f.to = int(int32(binary.LittleEndian.Uint32(value)))
		}
	}
	return k
}

// implementation returns the algorithm's numerical implementation flags.
func (a *api) implementation(h *heuristic) uint64 {
	value := make([]byte, 8)
	var written uint64
	if a.cublasLtAlgoCapabilityGet(&h.algo, capNumericalImpl, &value[0], 8, &written) != 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(value)
}
