//go:build nogpu

package cuda

// libraries returns an error: without the system's loader the program is one static file.
func libraries() (*api, error) {
	return nil, noGPU("this build uses no GPU: build without -tags nogpu")
}
