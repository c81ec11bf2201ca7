//go:build (!linux || !(amd64 || arm64)) && !nogpu

package cuda

import "runtime"

func libraries() (*api, error) {
	return nil, noGPU("CUDA is only supported on linux/amd64 and linux/arm64, and this system is %s/%s", runtime.GOOS, runtime.GOARCH)
}
