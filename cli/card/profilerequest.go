package card

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// profileRequest holds the flags of profile.
type profileRequest struct {
	request
	others     []*request // products to interleave with the first
	copies     []cuda.Traffic
	copyAlone  bool          // no product is profiled
	resolution time.Duration // 0: the resolution that the sensors give
	options    profile.Options
	picture    string            // path of the picture or report
	splitter   *measure.Splitter // nil: power is not split
	unsplit    string            // the reason if splitter is nil
}

func readProfile(c *cli.Context) (*profileRequest, error) {
	q := &profileRequest{resolution: c.Duration("resolution"), picture: c.String("output")}
	q.seed = c.Uint64("seed")
	var err error
	if q.Role, err = cost.ParseRole(c.String("role")); err != nil {
		return nil, exit.Usage(fmt.Errorf("--role: %w", err))
	}
	if q.Family, err = flag.ReadFamily(c); err != nil {
		return nil, err
	}
	if c.IsSet("dtype") {
		if q.dtype, err = arith.ParseType(strings.ToLower(c.String("dtype"))); err != nil {
			return nil, exit.Usage(fmt.Errorf("--dtype: %w", err))
		}
	}
	q.w = operand.DefaultW(q.dtype)
	if err := readSource(c, "w", &q.w); err != nil {
		return nil, err
	}
	if err := readSource(c, "x", &q.x); err != nil {
		return nil, err
	}
	if err := q.readShape(c.String("shape"), q.w.HasShape()); err != nil {
		return nil, err
	}
	if c.IsSet("interleave") {
		for shape := range strings.SplitSeq(c.String("interleave"), ",") {
			if err := q.readOther(shape); err != nil {
				return nil, err
			}
		}
	}
	if err := q.readCopy(c); err != nil {
		return nil, err
	}
	if err := outfile.CheckOutput(q.picture, q.models(), outfile.Pictures...); err != nil {
		return nil, err
	}
	return q, q.readOptions(c)
}

// readCopy reads the size of a copy. If no product is requested, the copy is profiled alone.
func (q *profileRequest) readCopy(c *cli.Context) error {
	if !c.IsSet("copy") {
		return nil
	}
	bytes, err := flag.ParseSize(c.String("copy"))
	if err != nil {
		return exit.Usage(fmt.Errorf("--copy: %w", err))
	}
	t := cuda.Traffic{Name: "copy of " + term.Size(bytes), Kind: cuda.Copy, Bytes: bytes}
	if err := t.Validate(); err != nil {
		return exit.Usage(fmt.Errorf("--copy %s: %w", c.String("copy"), err))
	}
	q.copies, q.copyAlone = []cuda.Traffic{t}, true
	for _, name := range []string{"w", "x", "shape", "dtype", "role", "interleave", "arch"} {
		q.copyAlone = q.copyAlone && !c.IsSet(name)
	}
	return nil
}

// readOther reads the shape of another product. Its operands are random, with the type of the first product.
func (q *profileRequest) readOther(text string) error {
	o := request{Options: q.Options, seed: q.seed, dtype: q.dtype, w: operand.DefaultW(q.dtype)}
	if err := o.readShape(text, false); err != nil {
		return exit.Usage(errors.New(strings.Replace(err.Error(), "--shape", "--interleave", 1)))
	}
	q.others = append(q.others, &o)
	return nil
}

func (q *profileRequest) readOptions(c *cli.Context) error {
	q.options = profile.Options{
		Length: c.Duration("length"), Runs: c.Int("runs"), Time: c.Duration("time"), Seed: q.seed,
		Idle: c.Duration("idle"), Bursts: c.Int("bursts"), Resolution: q.resolution, Readings: c.Bool("readings"), Self: os.Getpid(), Date: time.Now(), Command: term.CommandLine(os.Args[1:]...),
	}
	switch { // the library takes 0 as the default
	case q.options.Length == 0:
		return exit.Usagef("--length 0s: give 50ms to 1m")
	case q.options.Time == 0:
		return exit.Usagef("--time 0s: give at least the length of one run, %v", q.options.Length)
	case q.options.Idle == 0 && c.IsSet("idle"):
		return exit.Usagef("--idle 0s: give at least 300ms")
	case q.options.Runs == 0 && c.IsSet("runs"):
		return exit.Usagef("--runs 0: give 2 to 10000")
	}
	if q.options.Readings && !c.Bool("json") {
		return exit.Usagef("--readings needs --json, because only JSON shows readings: add --json")
	}
	if c.IsSet("resolution") && q.resolution == 0 {
		return exit.Usagef("--resolution 0s: give 2ms to 1s")
	}
	if err := q.options.Validate(); err != nil {
		return exit.Usagef("--%s", strings.ReplaceAll(err.Error(), "\n", "\n--")) // each option has the name of its flag
	}
	return nil
}

// products makes all products. It also returns the memory-mapped files of their operands.
func (q *profileRequest) products(ctx context.Context, m measure.Machine) (products []cuda.Product, files []string, err error) {
	if q.copyAlone {
		return nil, nil, nil
	}
	one, _, err := q.candidates(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	if n := len(one.Products); n != 1 {
		return nil, nil, exit.Usagef("--w %s: names %d linear layers, but profile measures one: name one layer, as in PATH:TENSOR", q.w.Text, n)
	}
	products = one.Products
	if q.w.Path == "" {
		products[0].Name = dimensions(products[0].Problem)
	}
	typ := products[0].Problem.Type
	for _, o := range q.others {
		o.dtype, o.shape.Type, o.w = typ, typ, operand.DefaultW(typ)
		other, _, err := o.candidates(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		p := other.Products[0]
		p.Name = dimensions(p.Problem)
		for slices.ContainsFunc(products, func(q cuda.Product) bool { return q.Name == p.Name }) {
			p.Name += " again"
		}
		products = append(products, p)
	}
	return products, one.Files, nil
}

func dimensions(p gemm.Problem) string { return fmt.Sprintf("%dx%dx%d", p.M, p.N, p.K) }
