package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

var Eval = &cli.Command{
	Name:      "eval",
	Usage:     "compute a model's loss and perplexity on tokens",
	ArgsUsage: "MODEL [OUT...]",
	Description: `The loss is the mean negative log-likelihood of all tokens but the first of each sequence, in
nats; the perplexity is exp(loss). Every OUT is compared with MODEL on the same tokens. The
report has the change of perplexity, with a 95 % interval over sequences, and the divergence. The
divergence is the mean of KL(MODEL ‖ OUT) over all tokens, in nats.

FILE is a safetensors file with two integer tensors [sequences, length]: calibration for
conversions, and evaluation for tests of the result. If FILE has a single tensor, the first half
of its sequences is for calibration. The default is MODEL/tokens.safetensors.

The running time grows with the number of weights times the number of tokens. An estimate appears
after the first block. --sequences N takes only the first N sequences; fewer sequences give a
wider interval.

With --max-loss SHARE the exit status is 3 if the perplexity of an OUT is higher than MODEL's by
more than SHARE.

With --device an NVIDIA GPU runs the whole model, with float32 activations as on the CPU. The
GPU's kernels are compiled with NVRTC, a part of the CUDA toolkit. Without NVRTC the GPU computes
the linear layers only, and the CPU does the rest.

With --update-card, each OUT must be a conversion of MODEL, on a disk or in a bucket. The
perplexities, the tokens, the date and the command replace the lines under the heading Accuracy
in OUT/README.md, the model card. The card's digest in OUT/lowtoggle.json changes, nothing else.

   lowtoggle eval MODEL
   lowtoggle eval MODEL OUT --tokens tokens.safetensors
   lowtoggle eval MODEL OUT --sequences 16            faster, for a first look
   lowtoggle eval MODEL OUT --device 0
   lowtoggle eval MODEL OUT --max-loss 0.5%           exit status 3 above +0.5 % perplexity
   lowtoggle eval MODEL OUT -o report.html            also a report
   lowtoggle eval MODEL OUT --update-card             also writes the perplexity to OUT/README.md
   lowtoggle eval MODEL OUT --csv > loss.csv`,
	Flags: flag.Join([]cli.Flag{outfile.ReportFlag, flag.Tokens,
		&cli.StringFlag{Name: "part", Value: tokens.Evaluation, Usage: "`PART` of the tokens: evaluation or calibration", DefaultText: tokens.Evaluation},
		&cli.IntFlag{Name: "sequences", Usage: "use only the first `N` sequences of the part", DefaultText: "all"},
		&cli.StringFlag{Name: "device", Usage: "run on the GPU of this `NUMBER`", DefaultText: "on the CPU"},
		evalMaxLossFlag, updateCardFlag, flag.Arch, flag.CSV}, flag.Common),
	Action: func(c *cli.Context) (err error) {
		if err := flag.OneFormat(c); err != nil {
			return err
		}
		q, err := readEval(c)
		if err != nil {
			return err
		}
		path := c.String("output")
		if err := outfile.CheckOutput(path, q.paths, outfile.HTML); err != nil {
			return err
		}
		defer exit.CloseAll(&err, q.Close)
		if err := q.open(c.Context); err != nil {
			return err
		}
		switch {
		case q.swapped() && q.maxLoss != nil:
			return exit.Usagef("%s is a conversion and %s is not: give the source first, so that --max-loss limits the loss of its conversion", q.paths[0], q.paths[1])
		case q.swapped():
			term.Notice(c, "%s is a conversion and %s is not, so %[2]s is compared with %[1]s: give the source first to compare the conversion with the source", q.paths[0], q.paths[1])
		}
		cards, err := openCards(c, q.models[0], q.models[1:], q.tokens.File)
		if err != nil {
			return err
		}
		r, failed := q.run(c)
		if failed != nil && (len(r.models) == 0 || !errors.Is(failed, context.Canceled)) {
			return failed
		}
		if failed == nil {
			failed = r.updateCards(c.Context, cards)
		}
		switch {
		case c.Bool("json"):
			err = term.JSON(c.App.Writer, r.document())
		case c.Bool("csv"):
			err = term.CSV(c.App.Writer, r.table())
		default:
			r.print(c.App.Writer)
			for _, m := range r.models {
				if m.Against != nil {
					remarkLimit(c.App.Writer, withinMaxLoss(m.rise, q.maxLoss))
				}
			}
		}
		if err == nil && failed == nil && path != "" {
			err = r.page(c).Write(c, path)
		}
		if err = errors.Join(failed, err); err != nil {
			return err
		}
		return r.aboveMaxLoss(q.maxLoss)
	},
}

// evaluation holds the arguments of eval, and the models and devices that it opened.
type evaluation struct {
	paths   []string
	purpose string   // part of the tokens: evaluation or calibration
	file    string   // token file; empty: the first model's own
	most    int      // sequences; 0: all
	maxLoss *float64 // in nats per token; nil: no limit
	family  *arch.Family
	arch    string // file of the family; empty: the catalogue has it
	workers int
	device  *int // number of the GPU; nil: the models run on the CPU

	gpu      *evaluate.Device
	products *cuda.Products // not nil if the GPU computes linear layers only
	tokens   tokens.Set
	models   []*weights.Model
	scorers  []*evaluate.Scorer // one for each model
}

func readEval(c *cli.Context) (q *evaluation, err error) {
	q = &evaluation{paths: c.Args().Slice(), purpose: c.String("part"), file: c.String("tokens"), arch: c.String("arch")}
	if len(q.paths) == 0 || slices.Contains(q.paths, "") {
		return nil, exit.Usagef("eval needs a MODEL; any number of models to compare with MODEL may follow; see lowtoggle eval --help")
	}
	if q.purpose != tokens.Evaluation && q.purpose != tokens.Calibration {
		return nil, exit.Usagef("--part %s: give %s or %s", q.purpose, tokens.Evaluation, tokens.Calibration)
	}
	if q.most = c.Int("sequences"); c.IsSet("sequences") && q.most < 1 {
		return nil, exit.Usagef("--sequences %d: give a number of at least 1", q.most)
	}
	for i, path := range q.paths {
		q.paths[i] = flag.Path(path)
	}
	if err := errors.Join(tokensGiven(c), checkUpdateCard(c, len(q.paths)-1)); err != nil {
		return nil, err
	}
	if q.workers, err = flag.ReadWorkers(c); err != nil {
		return nil, err
	}
	if c.IsSet("max-loss") && len(q.paths) < 2 {
		return nil, exit.Usagef("--max-loss compares conversions with MODEL: name a conversion (OUT) after MODEL")
	}
	if q.maxLoss, err = readMaxLoss(c); err != nil {
		return nil, err
	}
	if q.device, err = deviceNumber(c); err != nil {
		return nil, err
	}
	q.family, err = flag.ReadFamily(c)
	return q, err
}

// deviceNumber reads --device; nil without the flag.
func deviceNumber(c *cli.Context) (*int, error) {
	if !c.IsSet("device") {
		return nil, nil
	}
	device := c.String("device")
	if device == "simulated" {
		return nil, exit.Usagef("--device simulated: a simulated card cannot run a model: give a GPU's number, or leave --device out for the CPU")
	}
	number, err := strconv.Atoi(device)
	if err != nil || number < 0 {
		return nil, exit.Usagef("--device %s: give a GPU's number, from 0, or leave --device out for the CPU", device)
	}
	return &number, nil
}

// open opens all models before the first one runs, so that errors show early. The caller closes q, also after an
// error.
func (q *evaluation) open(ctx context.Context) error {
	for _, path := range q.paths {
		m, err := q.openModel(ctx, path)
		if err != nil {
			return err
		}
		q.models = append(q.models, m)
	}
	file, err := openTokens(ctx, q.file, q.models[0].Dir)
	if err != nil {
		return err
	}
	if q.tokens, err = file.Set(q.purpose); err != nil {
		return err
	}
	if q.most > q.tokens.N {
		return exit.Usagef("--sequences %d: the part %s of %s has %s: give at most this number, or leave out --sequences for all", q.most, q.purpose, q.tokens.File, term.Plural(q.tokens.N, "sequence", "sequences"))
	}
	if q.most > 0 {
		q.tokens.Part = q.tokens.First(q.most)
		q.tokens.Split += fmt.Sprintf("; --sequences: the first %d", q.most)
	}
	for _, m := range q.models {
		s, err := evaluate.New(m, q.family, q.tokens, q.workers)
		if err != nil {
			return err
		}
		q.scorers = append(q.scorers, s)
	}
	if q.device == nil {
		return nil
	}
	if q.gpu, err = evaluate.OpenDevice(*q.device); err != nil {
		return withoutDevice(err)
	}
	for _, s := range q.scorers {
		s.Device = q.gpu
	}
	return nil
}

// swapped reports whether the first model is a conversion and the only other one is not.
func (q *evaluation) swapped() bool {
	if len(q.models) != 2 {
		return false
	}
	if _, err := plan.ManifestOf(q.models[0]); err != nil {
		return false
	}
	_, err := plan.ManifestOf(q.models[1])
	return errors.Is(err, fs.ErrNotExist)
}

// openModel opens a model. All models but the first are conversions of the first.
func (q *evaluation) openModel(ctx context.Context, path string) (*weights.Model, error) {
	if len(q.models) > 0 {
		return openConverted(ctx, q.models[0], q.paths[0], path, q.arch)
	}
	return flag.OpenModel(ctx, path)
}

// tokensGiven returns an error for an empty --tokens.
func tokensGiven(c *cli.Context) error {
	if c.IsSet("tokens") && c.String("tokens") == "" {
		return exit.Usagef("--tokens is empty: name a file")
	}
	return nil
}

// Close closes the models and the GPU.
func (q *evaluation) Close() (err error) {
	if q.products != nil {
		err = q.products.Close()
	}
	if q.gpu != nil {
		err = errors.Join(err, q.gpu.Close())
	}
	for _, m := range q.models {
		err = errors.Join(err, m.Close())
	}
	return err
}

// run computes all losses, with progress. After an error, the report has the models evaluated so far.
func (q *evaluation) run(c *cli.Context) (r *evalReport, err error) {
	event, end := term.Progress(c)
	defer end()
	stopped := countSteps(event, q.scorers...)
	defer func() {
		err = stopped(err, "run the same command again to start over, or choose fewer sequences with --sequences")
	}()
	r = &evalReport{tokens: q.tokens}
	if q.gpu != nil {
		r.gpu = q.gpu.Info().Name
	}
	var first *evaluate.Pass
	defer func() { err = errors.Join(err, closePass(first)) }()
	for i, s := range q.scorers {
		start := time.Now()
		pass, err := q.pass(c.Context, s, q.models[i], r)
		if err != nil {
			return r, withoutDevice(err)
		}
		took := time.Since(start)
		if first == nil {
			first = pass
			err = r.add(q.paths[i], pass.Scores, pass.Scores, 0, took)
		} else {
			err = q.compare(c.Context, r, q.paths[i], first, pass, took)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// pass runs a model on the tokens. Without NVRTC, the GPU computes the linear layers only and the CPU does the rest.
func (q *evaluation) pass(ctx context.Context, s *evaluate.Scorer, m *weights.Model, r *evalReport) (*evaluate.Pass, error) {
	pass, err := s.Pass(ctx, m)
	if !errors.Is(err, cuda.ErrNoCompiler) {
		return pass, err
	}
	r.productsOnly = err.Error()
	if q.products == nil {
		q.products = q.gpu.NewProducts()
	}
	for _, s := range q.scorers {
		s.Device, s.Decoder.Products = nil, q.products
	}
	return s.Pass(ctx, m)
}

// compare adds a pass and its divergence from the first pass to the report, and closes the pass.
func (q *evaluation) compare(ctx context.Context, r *evalReport, path string, first, pass *evaluate.Pass, took time.Duration) (err error) {
	defer exit.CloseAll(&err, pass.Close)
	divergence, err := pass.Divergence(ctx, first)
	if err != nil {
		return weights.FileErrorf(path, "comparing its outputs with those of %s: %w", q.paths[0], err)
	}
	return r.add(path, first.Scores, pass.Scores, divergence, took)
}

func closePass(p *evaluate.Pass) error {
	if p == nil {
		return nil
	}
	return p.Close()
}

// countSteps shows the steps of all scorers as one progress bar. The steps of a scorer that appears twice count
// twice. stopped adds to the error of an interrupt how much was done, and what to do next.
func countSteps(event func(transform.Event), scorers ...*evaluate.Scorer) (stopped func(err error, next string) error) {
	e := transform.Event{Stage: "loss"}
	for _, s := range scorers {
		e.Total += int64(s.Steps())
		s.Step = func() {
			e.Done++
			event(e)
		}
	}
	event(e) // the first step may take a minute
	return func(err error, next string) error {
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("%w after %d %% of the work: %s", context.Canceled, 100*e.Done/e.Total, next)
		}
		return err
	}
}
