package card

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// runCommand runs a command with arguments.
func runCommand(t *testing.T, command cli.Command, args ...string) error {
	app := &cli.App{Writer: exit.NewOutput(io.Discard), ErrWriter: io.Discard, Commands: []*cli.Command{&command}, ExitErrHandler: func(*cli.Context, error) {}}
	return app.RunContext(t.Context(), append([]string{"lowtoggle", command.Name}, args...))
}

// TestPatternIsMeasured: the file's x and w are the operands that measure multiplies with the same flags. The metadata has an
// exponent for a tensor of another type, and for nothing else.
func TestPatternIsMeasured(t *testing.T) {
	model := testmodel.Random(t, "llama-tiny", 0).Dir
	const name = "model.layers.0.mlp.up_proj.weight"
	stored := filepath.Join(model, "model.safetensors") + ":" + name
	for i, c := range []struct {
		source string
		flags  []string
		scaled bool
	}{
		{"normal(0,0.02) | round(4)", []string{"--shape", "16x32x64", "--seed", "5"}, false},
		{"normal(0,1) | sort", []string{"--shape", "8x16x32", "--dtype", "fp8", "--x", "normal(0,1) | flip(1%)"}, false},
		{"uniform(-9,9)", []string{"--shape", "8x16x32", "--dtype", "int8", "--seed", "3"}, false},
		{stored, []string{"--shape", "4", "--seed", "7"}, false},
		{stored, []string{"--shape", "4", "--dtype", "fp8"}, true},
	} {
		path := filepath.Join(t.TempDir(), strconv.Itoa(i)+".safetensors")
		testmodel.OK(t, runCommand(t, *Pattern, append(append([]string{"--quiet", "-o", path}, c.flags...), c.source)...))
		file, err := weights.OpenFile(path)
		testmodel.OK(t, err)
		defer file.Close()

		var q *request
		requested := cli.Command{Name: "measure", Flags: Measure.Flags, Action: func(c *cli.Context) (err error) {
			q, err = measureRequest(c)
			return err
		}}
		testmodel.OK(t, runCommand(t, requested, append([]string{"--w", c.source, "--against", "none"}, c.flags...)...))
		q.set = operand.NewSet(q.operands())
		defer q.Close()
		products, err := q.set.Products(t.Context(), q.w)
		testmodel.OK(t, err)
		x, w, err := products[0][0].Whole(t.Context())
		testmodel.OK(t, err)
		for name, want := range map[string]gemm.Matrix{"x": x, "w": w} {
			have, _ := file.Tensor(name)
			if have.DType != want.DType || !bytes.Equal(have.Data, want.Data) {
				t.Errorf("%s %v: the file's %s are other bytes", c.source, c.flags, name)
			}
		}
		if exponent := file.Metadata["w_exponent"]; (exponent != "") != c.scaled {
			t.Errorf("%s %v: the exponent is %q", c.source, c.flags, exponent)
		}
	}
}
