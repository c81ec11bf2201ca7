package cuda

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// Every constant, its value and where NVIDIA's headers (CUDA 12.6) define it.
func TestEnums(t *testing.T) {
	for _, e := range []struct {
		ours   uint64
		value  uint64
		name   string
		header string
	}{
		{uint64(success), 0, "CUDA_SUCCESS", "cuda.h CUresult"},
		{uint64(errorOutOfMemory), 2, "CUDA_ERROR_OUT_OF_MEMORY", "cuda.h CUresult"},
		{uint64(errorNotReady), 600, "CUDA_ERROR_NOT_READY", "cuda.h CUresult"},
		{attrMultiprocessors, 16, "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", "cuda.h CUdevice_attribute"},
		{attrL2Bytes, 38, "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE", "cuda.h CUdevice_attribute"},
		{attrCapabilityMajor, 75, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR", "cuda.h CUdevice_attribute"},
		{attrCapabilityMinor, 76, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR", "cuda.h CUdevice_attribute"},
		{contextAuto, 0, "CU_CTX_SCHED_AUTO", "cuda.h CUctx_flags"},
		{streamNonBlocking, 1, "CU_STREAM_NON_BLOCKING", "cuda.h CUstream_flags"},
		{captureThreadLocal, 1, "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL", "cuda.h CUstreamCaptureMode"},
		{eventDefault, 0, "CU_EVENT_DEFAULT", "cuda.h CUevent_flags"},
		{functionMaxDynamicShared, 8, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", "cuda.h CUfunction_attribute"},
		{r32F, 0, "CUDA_R_32F", "library_types.h cudaDataType"},
		{r16F, 2, "CUDA_R_16F", "library_types.h cudaDataType"},
		{r8I, 3, "CUDA_R_8I", "library_types.h cudaDataType"},
		{r32I, 10, "CUDA_R_32I", "library_types.h cudaDataType"},
		{r16BF, 14, "CUDA_R_16BF", "library_types.h cudaDataType"},
		{r8FE4M3, 28, "CUDA_R_8F_E4M3", "library_types.h cudaDataType"},
		{compute16FPedantic, 65, "CUBLAS_COMPUTE_16F_PEDANTIC", "cublas_api.h cublasComputeType_t"},
		{compute32F, 68, "CUBLAS_COMPUTE_32F", "cublas_api.h cublasComputeType_t"},
		{compute32FPedantic, 69, "CUBLAS_COMPUTE_32F_PEDANTIC", "cublas_api.h cublasComputeType_t"},
		{compute32I, 72, "CUBLAS_COMPUTE_32I", "cublas_api.h cublasComputeType_t"},
		{compute32FTF32, 77, "CUBLAS_COMPUTE_32F_FAST_TF32", "cublas_api.h cublasComputeType_t"},
		{opN, 0, "CUBLAS_OP_N", "cublas_api.h cublasOperation_t"},
		{opT, 1, "CUBLAS_OP_T", "cublas_api.h cublasOperation_t"},
		{descTransA, 3, "CUBLASLT_MATMUL_DESC_TRANSA", "cublasLt.h cublasLtMatmulDescAttributes_t"},
		{descTransB, 4, "CUBLASLT_MATMUL_DESC_TRANSB", "cublasLt.h cublasLtMatmulDescAttributes_t"},
		{descScalePointerA, 17, "CUBLASLT_MATMUL_DESC_A_SCALE_POINTER", "cublasLt.h cublasLtMatmulDescAttributes_t"},
		{descScalePointerB, 18, "CUBLASLT_MATMUL_DESC_B_SCALE_POINTER", "cublasLt.h cublasLtMatmulDescAttributes_t"},
		{descScaleModeA, 31, "CUBLASLT_MATMUL_DESC_A_SCALE_MODE", "cublasLt.h cublasLtMatmulDescAttributes_t"},
		{descScaleModeB, 32, "CUBLASLT_MATMUL_DESC_B_SCALE_MODE", "cublasLt.h cublasLtMatmulDescAttributes_t"},
		{uint64(scaleTensor), 0, "CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F", "cublasLt.h cublasLtMatmulMatrixScale_t"},
		{uint64(scaleRow), 3, "CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F", "cublasLt.h cublasLtMatmulMatrixScale_t"},
		{uint64(scaleInputs), 4, "CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F", "cublasLt.h cublasLtMatmulMatrixScale_t"},
		{uint64(scaleBlock), 5, "CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F", "cublasLt.h cublasLtMatmulMatrixScale_t"},
		{prefMaxWorkspace, 1, "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES", "cublasLt.h cublasLtMatmulPreferenceAttributes_t"},
		{prefReduction, 3, "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK", "cublasLt.h cublasLtMatmulPreferenceAttributes_t"},
		{prefAlignmentA, 5, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES", "cublasLt.h cublasLtMatmulPreferenceAttributes_t"},
		{prefAlignmentA + 1, 6, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES", "cublasLt.h cublasLtMatmulPreferenceAttributes_t"},
		{prefAlignmentA + 2, 7, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES", "cublasLt.h cublasLtMatmulPreferenceAttributes_t"},
		{prefAlignmentA + 3, 8, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES", "cublasLt.h cublasLtMatmulPreferenceAttributes_t"},
		{reduceInPlace, 1, "CUBLASLT_REDUCTION_SCHEME_INPLACE", "cublasLt.h cublasLtReductionScheme_t"},
		{reduceCompute, 2, "CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE", "cublasLt.h cublasLtReductionScheme_t"},
		{prefImplMask, 12, "CUBLASLT_MATMUL_PREF_IMPL_MASK", "cublasLt.h cublasLtMatmulPreferenceAttributes_t"},
		{configAlgorithm, 0, "CUBLASLT_ALGO_CONFIG_ID", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{configTile, 1, "CUBLASLT_ALGO_CONFIG_TILE_ID", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{configSplitK, 2, "CUBLASLT_ALGO_CONFIG_SPLITK_NUM", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{configReduction, 3, "CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{configSwizzle, 4, "CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{configCustom, 5, "CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{configStages, 6, "CUBLASLT_ALGO_CONFIG_STAGES_ID", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{configInner, 7, "CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{configCluster, 8, "CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID", "cublasLt.h cublasLtMatmulAlgoConfigAttributes_t"},
		{capNumericalImpl, 15, "CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS", "cublasLt.h cublasLtMatmulAlgoCapAttributes_t"},
		{implTensorOps, 0xfe, "CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK", "cublasLt.h"},
		{implAccumulate16, 0x100, "CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F", "cublasLt.h"},
	} {
		if e.ours != e.value {
			t.Errorf("%s (%s) is %d, not %d", e.name, e.header, e.value, e.ours)
		}
	}
}

// cublasLt.h: algo is uint64_t[8]; the heuristic's result is algo, size_t, int, float, int[4].
func TestStructLayouts(t *testing.T) {
	var h heuristic
	for name, at := range map[string][2]uintptr{
		"sizeof algo":         {unsafe.Sizeof(h.algo), 64},
		"offset of workspace": {unsafe.Offsetof(h.workspace), 64},
		"offset of state":     {unsafe.Offsetof(h.state), 72},
		"offset of waves":     {unsafe.Offsetof(h.waves), 76},
		"offset of reserved":  {unsafe.Offsetof(h.reserved), 80},
		"sizeof result":       {unsafe.Sizeof(h), 96},
	} {
		if at[0] != at[1] {
			t.Errorf("%s is %d, C says %d", name, at[0], at[1])
		}
	}
}

// TestEnumsAreComplete: TestEnums has every constant of enums.go.
func TestEnumsAreComplete(t *testing.T) {
	files := token.NewFileSet()
	enums, err := parser.ParseFile(files, "enums.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := parser.ParseFile(files, "enums_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	ast.Inspect(tests, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			tested[id.Name] = true
		}
		return true
	})
	constants := 0
	for name, object := range enums.Scope.Objects {
		if object.Kind != ast.Con {
			continue
		}
		constants++
		if !tested[name] {
			t.Errorf("%s is not listed", name)
		}
	}
	if constants < 40 {
		t.Errorf("enums.go was read as %d constants", constants)
	}
}

// A function that no symbol fills would be called as nil.
func TestEveryFunctionHasItsSymbol(t *testing.T) {
	a, c, n := new(api), new(compiler), new(nccl)
	everyFunctionHasItsSymbol(t, a, append(a.driverSymbols(), a.blasSymbols()...))
	everyFunctionHasItsSymbol(t, c, c.symbols())
	everyFunctionHasItsSymbol(t, n, n.symbols())
}

func everyFunctionHasItsSymbol(t *testing.T, functions any, symbols []symbol) {
	filled, names := map[any]string{}, map[string]bool{}
	for _, s := range symbols {
		if filled[s.function] != "" || names[s.name] {
			t.Errorf("%s is listed twice", s.name)
		}
		filled[s.function], names[s.name] = s.name, true
	}
	v := reflect.ValueOf(functions).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i).Name
		if v.Field(i).Kind() != reflect.Func || field == "compiler" || field == "nccl" { // found later, if at all
			continue
		}
		address := reflect.NewAt(v.Field(i).Type(), v.Field(i).Addr().UnsafePointer()).Interface()
		symbol := filled[address]
		if symbol == "" || !strings.HasPrefix(symbol, field[:6]) || strings.HasPrefix(field, "nvrtc") && symbol != field {
			t.Errorf("%s is filled by %q", field, symbol)
		}
	}
}
