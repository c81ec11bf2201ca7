package cuda

import "unsafe"

// api holds the library functions that this package calls, with C's types: pointers to results are pointers, handles
// are uintptr, and device addresses and size_t are uint64.
type api struct {
	libraries []string // paths of the opened files, driver first
	compiler  func() (*compiler, error)
	nccl      func() (*nccl, error)

	cuInit                    func(flags uint32) result
	cuDriverGetVersion        func(version *int32) result
	cuGetErrorName            func(r result, name **byte) result
	cuGetErrorString          func(r result, text **byte) result
	cuDeviceGetCount          func(count *int32) result
	cuDeviceGet               func(device *int32, ordinal int32) result
	cuDeviceGetName           func(name *byte, size int32, device int32) result
	cuDeviceGetAttribute      func(value *int32, attribute, device int32) result
	cuDeviceGetPCIBusId       func(id *byte, size int32, device int32) result
	cuDeviceTotalMem          func(bytes *uint64, device int32) result
	cuCtxCreate               func(context *uintptr, flags uint32, device int32) result
	cuCtxDestroy              func(context uintptr) result
	cuCtxSetCurrent           func(context uintptr) result
	cuCtxSynchronize          func() result
	cuDevicePrimaryCtxRetain  func(context *uintptr, device int32) result
	cuDevicePrimaryCtxRelease func(device int32) result
	cuMemGetInfo              func(free, total *uint64) result
	cuMemAlloc                func(address *uint64, bytes uint64) result
	cuMemFree                 func(address uint64) result
	cuMemAllocHost            func(memory **byte, bytes uint64) result
	cuMemFreeHost             func(memory *byte) result
	cuMemcpyHtoD              func(to uint64, from *byte, bytes uint64) result
	cuMemcpyDtoH              func(to *byte, from uint64, bytes uint64) result
	cuMemcpyDtoD              func(to, from uint64, bytes uint64) result
	cuMemcpyDtoDAsync         func(to, from uint64, bytes uint64, stream uintptr) result
	cuMemsetD8                func(to uint64, value uint8, bytes uint64) result
	cuMemsetD32Async          func(to uint64, value uint32, words uint64, stream uintptr) result
	cuStreamCreate            func(stream *uintptr, flags uint32) result
	cuStreamDestroy           func(stream uintptr) result
	cuStreamWaitEvent         func(stream, event uintptr, flags uint32) result
	cuStreamSynchronize       func(stream uintptr) result
	cuStreamBeginCapture      func(stream uintptr, mode int32) result
	cuStreamEndCapture        func(stream uintptr, graph *uintptr) result
	cuGraphInstantiate        func(exec *uintptr, graph uintptr, flags uint64) result
	cuGraphLaunch             func(exec, stream uintptr) result
	cuGraphExecDestroy        func(exec uintptr) result
	cuGraphDestroy            func(graph uintptr) result
	cuEventCreate             func(event *uintptr, flags uint32) result
	cuEventRecord             func(event, stream uintptr) result
	cuEventQuery              func(event uintptr) result
	cuEventElapsedTime        func(milliseconds *float32, from, to uintptr) result
	cuEventDestroy            func(event uintptr) result
	cuModuleLoadData          func(module *uintptr, image *byte) result
	cuModuleUnload            func(module uintptr) result
	cuModuleGetFunction       func(function *uintptr, module uintptr, name *byte) result
	cuFuncSetAttribute        func(function uintptr, attribute, value int32) result
	cuLaunchKernel            func(function uintptr, gridX, gridY, gridZ, blockX, blockY, blockZ, shared uint32, stream uintptr, arguments *unsafe.Pointer, extra uintptr) result
	cublasLtGetVersion        func() uint64
	cublasLtGetStatusString   func(s status) string
	cublasLtCreate            func(handle *uintptr) status
	cublasLtDestroy           func(handle uintptr) status
	cublasLtMatmulDescCreate  func(desc *uintptr, compute, scale int32) status
	cublasLtMatmulDescSet     func(desc uintptr, attribute int32, value *byte, bytes uint64) status
	cublasLtMatmulDescDestroy func(desc uintptr) status
	cublasLtLayoutCreate      func(layout *uintptr, element int32, rows, cols uint64, stride int64) status
	cublasLtLayoutDestroy     func(layout uintptr) status
	cublasLtPreferenceCreate  func(pref *uintptr) status
	cublasLtPreferenceSet     func(pref uintptr, attribute int32, value *byte, bytes uint64) status
	cublasLtPreferenceDestroy func(pref uintptr) status
	cublasLtGetHeuristic      func(handle, desc, a, b, c, d, pref uintptr, want int32, found *heuristic, count *int32) status
	cublasLtAlgoConfigGet     func(algo *algorithm, attribute int32, value *byte, bytes uint64, written *uint64) status
	cublasLtAlgoCapabilityGet func(algo *algorithm, attribute int32, value *byte, bytes uint64, written *uint64) status
	cublasLtMatmul            func(handle, desc uintptr, alpha *byte, a uint64, layoutA uintptr, b uint64, layoutB uintptr, beta *byte, c uint64, layoutC uintptr, d uint64, layoutD uintptr, algo *algorithm, workspace, workspaceBytes uint64, stream uintptr) status
}

// symbol is a function's exported name and the field through which it is called.
type symbol struct {
	name     string
	function any
}

// driverSymbols lists the functions that the driver must export. It uses their names in the binary interface, for
// example cuMemAlloc_v2, to which the headers' macros map cuMemAlloc.
func (a *api) driverSymbols() []symbol {
	return []symbol{
		{"cuInit", &a.cuInit},
		{"cuDriverGetVersion", &a.cuDriverGetVersion},
		{"cuGetErrorName", &a.cuGetErrorName},
		{"cuGetErrorString", &a.cuGetErrorString},
		{"cuDeviceGetCount", &a.cuDeviceGetCount},
		{"cuDeviceGet", &a.cuDeviceGet},
		{"cuDeviceGetName", &a.cuDeviceGetName},
		{"cuDeviceGetAttribute", &a.cuDeviceGetAttribute},
		{"cuDeviceGetPCIBusId", &a.cuDeviceGetPCIBusId},
		{"cuDeviceTotalMem_v2", &a.cuDeviceTotalMem},
		{"cuCtxCreate_v2", &a.cuCtxCreate},
		{"cuCtxDestroy_v2", &a.cuCtxDestroy},
		{"cuCtxSetCurrent", &a.cuCtxSetCurrent},
		{"cuCtxSynchronize", &a.cuCtxSynchronize},
		{"cuDevicePrimaryCtxRetain", &a.cuDevicePrimaryCtxRetain},
		{"cuDevicePrimaryCtxRelease_v2", &a.cuDevicePrimaryCtxRelease},
		{"cuMemGetInfo_v2", &a.cuMemGetInfo},
		{"cuMemAlloc_v2", &a.cuMemAlloc},
		{"cuMemFree_v2", &a.cuMemFree},
		{"cuMemAllocHost_v2", &a.cuMemAllocHost},
		{"cuMemFreeHost", &a.cuMemFreeHost},
		{"cuMemcpyHtoD_v2", &a.cuMemcpyHtoD},
		{"cuMemcpyDtoH_v2", &a.cuMemcpyDtoH},
		{"cuMemcpyDtoD_v2", &a.cuMemcpyDtoD},
		{"cuMemcpyDtoDAsync_v2", &a.cuMemcpyDtoDAsync},
		{"cuMemsetD8_v2", &a.cuMemsetD8},
		{"cuMemsetD32Async", &a.cuMemsetD32Async},
		{"cuStreamCreate", &a.cuStreamCreate},
		{"cuStreamDestroy_v2", &a.cuStreamDestroy},
		{"cuStreamWaitEvent", &a.cuStreamWaitEvent},
		{"cuStreamSynchronize", &a.cuStreamSynchronize},
		{"cuStreamBeginCapture_v2", &a.cuStreamBeginCapture},
		{"cuStreamEndCapture", &a.cuStreamEndCapture},
		{"cuGraphInstantiateWithFlags", &a.cuGraphInstantiate},
		{"cuGraphLaunch", &a.cuGraphLaunch},
		{"cuGraphExecDestroy", &a.cuGraphExecDestroy},
		{"cuGraphDestroy", &a.cuGraphDestroy},
		{"cuEventCreate", &a.cuEventCreate},
		{"cuEventRecord", &a.cuEventRecord},
		{"cuEventQuery", &a.cuEventQuery},
		{"cuEventElapsedTime", &a.cuEventElapsedTime},
		{"cuEventDestroy_v2", &a.cuEventDestroy},
		{"cuModuleLoadData", &a.cuModuleLoadData},
		{"cuModuleUnload", &a.cuModuleUnload},
		{"cuModuleGetFunction", &a.cuModuleGetFunction},
		{"cuFuncSetAttribute", &a.cuFuncSetAttribute},
		{"cuLaunchKernel", &a.cuLaunchKernel},
	}
}

// blasSymbols lists the functions that cuBLASLt must export.
func (a *api) blasSymbols() []symbol {
	return []symbol{
		{"cublasLtGetVersion", &a.cublasLtGetVersion},
		{"cublasLtGetStatusString", &a.cublasLtGetStatusString},
		{"cublasLtCreate", &a.cublasLtCreate},
		{"cublasLtDestroy", &a.cublasLtDestroy},
		{"cublasLtMatmulDescCreate", &a.cublasLtMatmulDescCreate},
		{"cublasLtMatmulDescSetAttribute", &a.cublasLtMatmulDescSet},
		{"cublasLtMatmulDescDestroy", &a.cublasLtMatmulDescDestroy},
		{"cublasLtMatrixLayoutCreate", &a.cublasLtLayoutCreate},
		{"cublasLtMatrixLayoutDestroy", &a.cublasLtLayoutDestroy},
		{"cublasLtMatmulPreferenceCreate", &a.cublasLtPreferenceCreate},
		{"cublasLtMatmulPreferenceSetAttribute", &a.cublasLtPreferenceSet},
		{"cublasLtMatmulPreferenceDestroy", &a.cublasLtPreferenceDestroy},
		{"cublasLtMatmulAlgoGetHeuristic", &a.cublasLtGetHeuristic},
		{"cublasLtMatmulAlgoConfigGetAttribute", &a.cublasLtAlgoConfigGet},
		{"cublasLtMatmulAlgoCapGetAttribute", &a.cublasLtAlgoCapabilityGet},
		{"cublasLtMatmul", &a.cublasLtMatmul},
	}
}
