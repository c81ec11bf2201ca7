package synth_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestSameSeedSameBytes: a seed gives the recorded folder, in every type, in some formats, and sparse. Recorded commands depend
// on seeds.
func TestSameSeedSameBytes(t *testing.T) {
	var b bytes.Buffer
	write := func(name string, config []byte, o synth.Options) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "model")
		o.Seed = 9
		testmodel.OK(t, synth.Folder(t.Context(), config, dir, o))
		fmt.Fprintf(&b, "%s: %s\n", name, testmodel.Digest(t, dir, ""))
	}
	wide := testmodel.Config(t, "llama-tiny", testmodel.QuantisedShape)
	write("type of the config", wide, synth.Options{ShardBytes: 100_000})
	write("sparse", wide, synth.Options{ShardBytes: 100_000, Sparse: true, Filled: []int{2}})
	for _, d := range []weights.DType{weights.F32, weights.F16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		write(d.String(), wide, synth.Options{DType: d, ShardBytes: 100_000})
	}
	for _, name := range []string{"deepseek-fp8", "gptq-order", "awq", "modelopt-nvfp4"} {
		f, err := quantise.Parse(name)
		testmodel.OK(t, err)
		write(name, wide, synth.Options{Format: f, ShardBytes: 200_000})
	}
	f, err := quantise.Parse("deepseek-fp8")
	testmodel.OK(t, err)
	write("sparse deepseek-fp8", wide, synth.Options{Format: f, Sparse: true, Filled: []int{2}, ShardBytes: 100_000})
	for _, name := range []string{"gpt2-tiny", "qwen3_moe-tiny", "whisper-tiny"} {
		write(name, testmodel.Config(t, name, ""), synth.Options{ShardBytes: 70_000})
	}
	goldenfile.Same(t, "testdata/frozen.txt", b.Bytes())
}
