//go:build nogpu

package cuda

// libraries returns an error, because a static program has no dynamic loader.
func libraries() (*api, error) {
	return nil, noGPU("this build has no GPU support: build without -tags nogpu")
}
