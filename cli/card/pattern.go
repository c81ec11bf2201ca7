package card

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

var Pattern = &cli.Command{
	Name:      "pattern",
	Usage:     "write the operands of measure to a file, for kernels of your own",
	ArgsUsage: "SOURCE",
	Description: `Writes the operands of y[M,N] = x[M,K]·w[N,K]ᵀ to a safetensors file, as the tensors x and w,
row-major. SOURCE gives w: a pattern or PATH:TENSOR. measure multiplies the same bytes if it has
SOURCE as --w, and the same --x, --shape, --dtype and --seed. A pattern may also be measure's
--against. A pattern has the same bytes on every machine.

For fp8 and int8, tensors of other types are multiplied by a power of two, as in measure. The
file's metadata has the exponents, as x_exponent and w_exponent. Quantised weights cannot be
written, because the file has no place for their scales.

docs/patterns.md describes the language of patterns.

   lowtoggle pattern 'normal(0,0.02) | round(4)' -o rounded.safetensors
   lowtoggle pattern zeros --shape 4096x4096x4096 --dtype fp8 --seed 3 -o zeros.safetensors

TYPE is fp32, tf32, fp16, bf16, fp16-cuda, fp8 or int8. x and w have the dtype of TYPE's
operands. In int8, the default of --x is normal(0,32).`,
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the operands to `FILE`, which ends in .safetensors"},
		xFlag,
		&cli.StringFlag{Name: "shape", Usage: "`MxNxK`, or M if SOURCE is a tensor", DefaultText: "8192 each"},
		&cli.StringFlag{Name: "dtype", Usage: "`TYPE` to multiply in", DefaultText: "the tensor's, or bf16"},
		flag.Seed, flag.JSON, flag.Quiet, flag.Log,
	},
	Action: func(c *cli.Context) (err error) {
		args, err := flag.Arguments(c, "SOURCE")
		if err != nil {
			return err
		}
		q, err := patternRequest(c, args[0])
		if err != nil {
			return err
		}
		path := c.String("output")
		if err := checkOperands(path, q.models()); err != nil {
			return err
		}
		q.set = operand.NewSet(q.operands())
		defer exit.CloseAll(&err, q.Close)
		products, err := q.set.Products(c.Context, q.w)
		if err != nil {
			return operandError(err)
		}
		if n := len(products[0]); n != 1 {
			return exit.Usagef("%s names %d layers: name one tensor", args[0], n)
		}
		p := products[0][0]
		if n := p.X.Bytes() + p.W.Bytes(); n > mostOperands {
			return exit.Usagef("--shape: x and w are %s, and at most %s are possible: choose a smaller shape", term.Size(int64(n)), term.Size(mostOperands))
		}
		event, end := term.Progress(c)
		r, err := writeOperands(c.Context, path, q, p, event)
		end()
		if err != nil {
			return operandError(err)
		}
		if c.Bool("json") {
			return term.JSON(c.App.Writer, r)
		}
		_, err = fmt.Fprintf(c.App.Writer, "%s written: x of %v and w of %v in %s, %s\n", printable.Quote(path), r.Tensors[0].Shape, r.Tensors[1].Shape,
			r.Tensors[0].DType, term.Size(r.Bytes))
		return err
	},
}

// mostOperands is the largest size of both operands, in bytes. They are made in memory.
const mostOperands = 16 << 30

func patternRequest(c *cli.Context, source string) (*request, error) {
	q := &request{seed: c.Uint64("seed")}
	var err error
	if c.IsSet("dtype") {
		if q.dtype, err = arith.ParseType(strings.ToLower(c.String("dtype"))); err != nil {
			return nil, exit.Usage(fmt.Errorf("--dtype: %w", err))
		}
	}
	if q.w, err = operand.Parse(flag.Path(source)); err != nil {
		return nil, sourceError("", err)
	}
	if err := readSource(c, "x", &q.x); err != nil {
		return nil, err
	}
	return q, q.readShape(c.String("shape"), q.w.HasShape())
}

// checkOperands returns an error if the file of operands cannot be written or exists. models are the paths of models.
func checkOperands(path string, models []string) error {
	if path == "" {
		return exit.Usagef("-o is missing: name the file to write, such as operands.safetensors")
	}
	if err := outfile.CheckOutput(path, models, outfile.Safetensors); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil { // it may be a model
		return exit.OutputExists(weights.FileErrorf(path, "exists already: name another file with -o"))
	}
	return nil
}

// patternJSON is the output of pattern --json.
type patternJSON struct {
	Output  string        `json:"output"`
	Bytes   int64         `json:"bytes"` // of the file
	Seed    uint64        `json:"seed"`
	Tensors []operandJSON `json:"tensors"` // x and w
}

type operandJSON struct {
	Name   string        `json:"name"`
	Source string        `json:"source"` // pattern, or PATH:TENSOR
	DType  weights.DType `json:"dtype"`
	Shape  []int         `json:"shape"`
	// Exponent is the exponent of the power of two that the source's values were multiplied by, to fit the type. 0 means
	// that the values did not change.
	Exponent int    `json:"exponent"`
	SHA256   string `json:"sha256"` // of the elements
}

// writeOperands makes the operands of p and writes them to a file. The file appears whole or not at all.
func writeOperands(ctx context.Context, path string, q *request, p operand.Product, event func(transform.Event)) (*patternJSON, error) {
	r := &patternJSON{Output: path, Seed: q.seed}
	x, w, err := p.Whole(ctx)
	if err != nil {
		return nil, err
	}
	texts := []string{q.operands().XText(p.Problem.Type), q.w.Text}
	metadata := map[string]string{"x": texts[0], "w": texts[1], "seed": strconv.FormatUint(q.seed, 10)}
	var infos []weights.Info
	for i, m := range []gemm.Matrix{x, w} {
		name := []string{"x", "w"}[i]
		if m.Scales != nil || m.Codes != nil {
			return nil, exit.Usagef("%s: is quantised, and the file has no place for scales: name the tensor of an unquantised model", texts[i])
		}
		exponent, err := []*operand.Matrix{p.X, p.W}[i].Exponent(ctx)
		if err != nil {
			return nil, err
		}
		if exponent != 0 {
			metadata[name+"_exponent"] = strconv.Itoa(exponent)
		}
		r.Tensors = append(r.Tensors, operandJSON{Name: name, Source: texts[i], DType: m.DType, Shape: []int{m.Rows, m.Cols}, Exponent: exponent})
		infos = append(infos, weights.Info{Name: name, DType: m.DType, Shape: []int{m.Rows, m.Cols}})
	}
	head, placed, err := weights.EncodeHeader(infos, metadata)
	if err != nil {
		return nil, weights.FileErrorf(path, "%w", err)
	}
	data := placed[len(placed)-1].End
	r.Bytes = int64(len(head)) + data
	err = atomicfile.Stream(path, func(to io.Writer) error {
		if _, err := to.Write(head); err != nil {
			return err
		}
		done := int64(0)
		for i, m := range []gemm.Matrix{x, w} {
			sum := sha256.New()
			err := weights.Guard(strings.Join(p.Files(), ", "), func() error {
				const chunk = 1 << 20
				for rest := weights.Need(m.Data); len(rest) > 0; {
					if err := ctx.Err(); err != nil {
						return err
					}
					part := rest[:min(chunk, len(rest))]
					sum.Write(part)
					if _, err := to.Write(part); err != nil {
						return err
					}
					rest = rest[len(part):]
					done += int64(len(part))
					event(transform.Event{Stage: "write", Done: done, Total: data})
				}
				return nil
			})
			if err != nil {
				return err
			}
			r.Tensors[i].SHA256 = hex.EncodeToString(sum.Sum(nil))
		}
		return nil
	})
	return r, err
}
