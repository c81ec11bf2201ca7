package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

var (
	planTokensFlag = &cli.StringFlag{Name: "tokens", Usage: "tokens in `FILE`: one part to choose by, one to judge by"}
	maxLossFlag    = &cli.StringFlag{Name: "max-loss", Usage: "perplexity may rise by `SHARE`, such as 0.1%", DefaultText: "the recipe's"}
	searchTimeFlag = &cli.DurationFlag{Name: "search-time", Usage: "search on for `TIME`, such as 5m", DefaultText: "until the budget is spent"}
	searchDirFlag  = &cli.StringFlag{Name: "search-dir", Usage: "keep in `DIR` what the search finds", DefaultText: "not kept"}
)

// nats per token that a rise of the perplexity by a share is.
func nats(share float64) *float64 {
	v := math.Log1p(share)
	return &v
}

// readBudget reads --max-loss and what goes with it.
func readBudget(c *cli.Context, o *transform.Options) error {
	if err := tokensGiven(c); err != nil {
		return err
	}
	for _, f := range []string{"max-loss", "search-time", "search-dir"} {
		if c.IsSet(f) && !c.IsSet("tokens") {
			return usagef("--%s needs tokens: give --tokens FILE; without tokens, --min-snr is a budget", f)
		}
	}
	if c.Duration("search-time") < 0 {
		return usagef("--search-time %v: give a time such as 5m", c.Duration("search-time"))
	}
	if !c.IsSet("max-loss") {
		return nil
	}
	if c.IsSet("min-snr") {
		return usagef("--max-loss and --min-snr exclude each other")
	}
	text := c.String("max-loss")
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v <= 1) {
		return usagef("--max-loss %q: give a share such as 0.1%% or 0.001, above 0 and up to 100%%", text)
	}
	o.MaxLoss, o.MinSNR = nats(v), nil
	return nil
}

// budget is what a conversion knows of tokens: where its layers' inputs are kept, and what judges it.
type budget struct {
	dir   string // of what the search finds
	kept  bool   // stays there
	model *weights.Model
	path  string
	fit, held,
	evaluation tokens.Set
	scorer *evaluate.Scorer // of evaluation
	source *forward.Result  // of the model on held; nil until it is known
	key    string
	// strange says what is odd about the tokens; empty where nothing is.
	strange string
}

// newBudget reads the tokens that --tokens names; nil where it names none. beside is the file or folder beside
// which the search keeps what it finds.
func newBudget(c *cli.Context, m *weights.Model, path, beside string, o transform.Options) (*budget, error) {
	if !c.IsSet("tokens") {
		return nil, nil
	}
	file, err := openTokens(c.String("tokens"), m.Dir)
	if err != nil {
		return nil, err
	}
	b := &budget{model: m, path: path}
	calibration, err := file.Set(tokens.Calibration)
	if err != nil {
		return nil, err
	}
	if b.evaluation, err = file.Set(tokens.Evaluation); err != nil {
		return nil, err
	}
	if b.fit, b.held, err = calibration.HoldBack(); err != nil {
		return nil, err
	}
	if b.scorer, err = evaluate.New(m, o.Family, b.evaluation, o.Workers); err != nil {
		return nil, fmt.Errorf("%w; without tokens, --min-snr is a budget", err)
	}
	for _, set := range []tokens.Set{b.fit, b.held, b.evaluation} {
		if err := set.Error(b.scorer.Decoder.Check(set.Sequences)); err != nil {
			return nil, err
		}
	}
	if b.key, err = tokensKey(c, m, b.fit, b.held); err != nil {
		return nil, err
	}
	b.dir, b.kept, err = searchDir(c, path, beside, b.key)
	return b, err
}

// tokensKey tells model and tokens from all others.
func tokensKey(c *cli.Context, m *weights.Model, sets ...tokens.Set) (string, error) {
	fp, err := transform.Fingerprint(m)
	if err != nil {
		return "", err
	}
	var family []byte
	if path := c.String("arch"); path != "" {
		if family, err = os.ReadFile(path); err != nil {
			return "", err
		}
	}
	return hessian.Key(fp.SHA256, m.Config, family, sets...), nil
}

// fed is the inputs of a model's layers, as transform asks for them.
type fed struct {
	key       string
	fit, held *hessian.Store
}

func (f fed) Key() string { return f.key }

func (f fed) Has(tensor string) bool {
	return f.fit != nil && f.fit.Has(tensor) && f.held.Has(tensor)
}

func (f fed) Moments(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	return f.fit.Read(ctx, tensor)
}

func (f fed) Held(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	return f.held.Read(ctx, tensor)
}

// inputs collects what layers are fed with, or finds it where it was kept. Where the plan has a budget of
// loss, the same pass over the held-back tokens is the reference of its evaluator.
func (b *budget) inputs(c *cli.Context, o transform.Options) (transform.Inputs, error) {
	if err := mark(b.dir, b.kept); err != nil {
		return nil, err
	}
	event, end := term.Progress(c)
	defer end()
	d, w := b.scorer.Decoder, forward.Stored(b.model)
	step := func(before int) hessian.Options {
		return hessian.Options{Workers: o.Workers, Key: b.key, Progress: func(n, total int) {
			event(transform.Event{Stage: "inputs", Done: int64(before*total + n), Total: int64(2 * total)})
		}}
	}
	f, dir := fed{key: b.key}, func(name string) string { return filepath.Join(b.dir, name) }
	var err error
	if f.fit, err = hessian.Collect(c.Context, d, w, b.fit.Sequences, dir("fit"), step(0)); err != nil {
		return nil, b.failed(c.Context, dir("fit"), b.fit.Error(err))
	}
	if b.source != nil || o.MaxLoss == nil {
		f.held, err = hessian.Collect(c.Context, d, w, b.held.Sequences, dir("held"), step(1))
	} else {
		keep := forward.Keep{Entries: divergence.FewSequences(b.held.Sequences)}
		f.held, b.source, err = hessian.CollectAndScore(c.Context, d, w, b.held.Sequences, dir("held"), keep, step(1))
	}
	if err != nil {
		return nil, b.failed(c.Context, dir("held"), b.held.Error(err))
	}
	return f, nil
}

// failed removes what was collected where a model or a disk must be mended first.
func (b *budget) failed(ctx context.Context, dir string, err error) error {
	if ctx.Err() != nil || b.kept {
		return err
	}
	err = errors.Join(err, os.RemoveAll(dir))
	if left, _ := os.ReadDir(b.dir); len(left) == 1 && left[0].Name() == unkept {
		err = errors.Join(err, removeSearch(b.dir))
	}
	return err
}

// spend adds what the search works with to the options.
func (b *budget) spend(c *cli.Context, o *transform.Options) error {
	j := divergence.FromPass(b.scorer.Decoder, forward.Stored(b.model), b.source, divergence.Options{PerLayer: divergence.FewSequences(b.held.Sequences)})
	if guess := math.Log(float64(b.scorer.Decoder.Vocabulary())); j.Loss() > guess {
		b.strange = fmt.Sprintf("%s: the model's loss on the %s tokens is %.3f nats, and guessing has %.3f: are they of this model's tokenizer, and of texts that it knows?",
			b.held.File, b.held.Purpose, j.Loss(), guess)
	}
	key, err := b.searchKey(c, *o)
	if err != nil {
		return err
	}
	o.Search = &transform.Search{Judge: j, Time: c.Duration("search-time"),
		Record: transform.Folder{Dir: filepath.Join(b.dir, "search"), Key: key},
		Better: func(p *transform.Plan) error {
			js, err := p.Encode()
			if err != nil {
				return err
			}
			return replaceFile(filepath.Join(b.dir, "plan.json"), js)
		}}
	return nil
}

// searchKey tells a search from every other that might find something else; those of several budgets share what
// they find.
func (b *budget) searchKey(c *cli.Context, o transform.Options) (string, error) {
	cost, err := json.Marshal(o.Cost)
	if err != nil {
		return "", err
	}
	var family []byte
	if path := c.String("arch"); path != "" {
		if family, err = os.ReadFile(path); err != nil {
			return "", err
		}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%v\n%v\n%v\n%x\n%x\n", b.key, Version, o.Passes, o.Workload, o.Role, sha256.Sum256(cost), sha256.Sum256(family))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// finish removes what the search found, unless it is to be kept.
func (b *budget) finish() error {
	if b == nil || b.kept {
		return nil
	}
	return removeSearch(b.dir)
}

// verdict compares the output with the model on evaluation tokens.
func (b *budget) verdict(c *cli.Context, out string) (*lossJSON, error) {
	m, err := openModel(out)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	event, end := term.Progress(c)
	defer end()
	countSteps(event, b.scorer, b.scorer)
	loss, err := b.scorer.Compare(c.Context, b.model, m, nil)
	if err != nil {
		return nil, err
	}
	return newLoss(loss), nil
}

// keeps is an error where the verdict is over the budget.
func (b *budget) keeps(l *lossJSON, nats *float64) error {
	if nats == nil || l == nil || l.Difference <= *nats {
		return nil
	}
	return fmt.Errorf("%w: on the evaluation tokens perplexity rises by %.3f %%, more than the %.3g %% allowed; convert again with a smaller --max-loss, or more calibration tokens of the same kind",
		errShort, 100*math.Expm1(l.Difference), 100*math.Expm1(*nats))
}
