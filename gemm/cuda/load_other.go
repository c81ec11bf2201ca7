//go:build (!linux || !(amd64 || arm64)) && !nogpu

package cuda

import "runtime"

func libraries() (*api, error) {
	return nil, noGPU("CUDA is used on linux/amd64 and linux/arm64 only, and this is %s/%s", runtime.GOOS, runtime.GOARCH)
}
