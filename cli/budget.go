package cli

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
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
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
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
	evaluation judged
	judge *lossJudge // of evaluation
	key   string
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
	calibration, err := partOf(file, calibrationPart)
	if err != nil {
		return nil, err
	}
	if b.evaluation, err = partOf(file, evaluationPart); err != nil {
		return nil, err
	}
	if b.fit, b.held, err = holdBack(calibration); err != nil {
		return nil, err
	}
	if b.judge, err = newJudge(m, path, o.Family, b.evaluation, o.Workers); err != nil {
		return nil, fmt.Errorf("%w; without tokens, --min-snr is a budget", err)
	}
	for _, p := range []judged{b.fit, b.held, b.evaluation} {
		if err := b.judge.decoder.Check(p.Sequences); err != nil {
			return nil, fmt.Errorf("on the %s tokens of %s: %w", p.purpose, p.file, err)
		}
	}
	if b.key, err = tokensKey(c, m, b.fit, b.held); err != nil {
		return nil, err
	}
	b.dir, b.kept, err = searchDir(c, path, beside, b.key)
	return b, err
}

// heldShare of the calibration sequences are held back from what values are fitted to.
const heldShare = 4

// holdBack parts what values are fitted to from what tells how much they lose.
func holdBack(p judged) (fit, held judged, err error) {
	n := (p.N + heldShare - 1) / heldShare
	if p.N < 4 {
		return fit, held, fmt.Errorf("%s: part %s: %s of %d tokens: too few to choose by; give at least 4 sequences, and some 32 000 tokens for a budget of 0.1 %%",
			p.file, p.purpose, term.Plural(p.N, "sequence", "sequences"), p.T)
	}
	fit, held = p, p
	fit.N, held.N = p.N-n, n // the last: neighbours may be of one text, which would tell too little of others
	fit.Sequences, held.Sequences = p.Sequences[:fit.N], p.Sequences[fit.N:]
	return fit, held, nil
}

// tokensKey tells model and tokens from all others.
func tokensKey(c *cli.Context, m *weights.Model, parts ...judged) (string, error) {
	fp, err := transform.Fingerprint(m)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	// What layers are fed with goes by the arithmetic, too: by the configuration and the family.
	fmt.Fprintf(h, "%s %d\n%s\n", fp.SHA256, len(m.Config), m.Config)
	if path := c.String("arch"); path != "" {
		family, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		h.Write(family)
	}
	for _, p := range parts {
		fmt.Fprintln(h, p.N, p.T)
		for _, s := range p.Sequences {
			if err := binary.Write(h, binary.LittleEndian, s); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
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

// inputs collects what layers are fed with, or finds it where it was kept.
func (b *budget) inputs(c *cli.Context, o transform.Options) (transform.Inputs, error) {
	if err := mark(b.dir, b.kept); err != nil {
		return nil, err
	}
	event, end := term.Progress(c)
	defer end()
	f := fed{key: b.key}
	done := 0
	for _, part := range []struct {
		name string
		judged
		store **hessian.Store
	}{{"fit", b.fit, &f.fit}, {"held", b.held, &f.held}} {
		before := done
		var err error
		*part.store, err = hessian.Collect(c.Context, b.judge.decoder, forward.Stored(b.model), part.Sequences, filepath.Join(b.dir, part.name),
			hessian.Options{Workers: o.Workers, Key: b.key, Progress: func(n, total int) {
				done = before + n
				event(transform.Event{Stage: "inputs", Done: int64(done), Total: int64(2 * total)})
			}})
		if err != nil {
			if c.Context.Err() == nil && !b.kept { // a model or a disk that must be mended first
				err = errors.Join(err, os.RemoveAll(filepath.Join(b.dir, part.name)))
				if left, _ := os.ReadDir(b.dir); len(left) == 1 && left[0].Name() == unkept {
					err = errors.Join(err, removeSearch(b.dir))
				}
			}
			return nil, fmt.Errorf("on the %s tokens of %s: %w", part.purpose, part.file, err)
		}
	}
	return f, nil
}

// judges are two: few tokens tell what a layer's errors cost, all that are held back how far whole
// models depart.
type judges struct {
	few *divergence.Evaluator
	*divergence.Evaluator
}

func (j judges) PerLayer(ctx context.Context, base, changed transform.Values, done func(string, float64) error) error {
	return j.few.PerLayer(ctx, base, changed, done)
}

// fewTokens tell what a layer's errors cost.
const fewTokens = 4096

// spend adds what the search works with to the options.
func (b *budget) spend(c *cli.Context, o *transform.Options) error {
	few := b.held.Sequences[:min(b.held.N, max(1, fewTokens/b.held.T))]
	event, end := term.Progress(c)
	defer end()
	var j judges
	for i, part := range []struct {
		tokens [][]int32
		judge  **divergence.Evaluator
	}{{few, &j.few}, {b.held.Sequences, &j.Evaluator}} {
		var err error
		*part.judge, err = divergence.New(c.Context, b.judge.decoder, forward.Stored(b.model), part.tokens,
			divergence.Options{Progress: func(n, total int) {
				event(transform.Event{Stage: "judge", Done: int64(i*total + n), Total: int64(2 * total)})
			}})
		if err != nil {
			return fmt.Errorf("on the %s tokens of %s: %w", b.held.purpose, b.held.file, err)
		}
	}
	if guess := math.Log(float64(b.judge.layout.Dims["vocab"])); j.Loss() > guess {
		b.strange = fmt.Sprintf("%s: the model's loss on the %s tokens is %.3f nats, and guessing has %.3f: are they of this model's tokenizer, and of texts that it knows?",
			b.held.file, b.held.purpose, j.Loss(), guess)
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
	countSteps(event, b.judge, b.judge)
	before, err := b.judge.scores(c.Context, b.judge.stored(b.model), nil)
	if err != nil {
		return nil, err
	}
	after, err := b.judge.scores(c.Context, b.judge.stored(m), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	return newLoss(before, after, b.evaluation)
}

// keeps is an error where the verdict is over the budget.
func (b *budget) keeps(l *lossJSON, nats *float64) error {
	if nats == nil || l == nil || l.Difference <= *nats {
		return nil
	}
	return fmt.Errorf("%w: on the evaluation tokens perplexity rises by %.3f %%, more than the %.3g %% allowed; convert again with a smaller --max-loss, or more calibration tokens of the same kind",
		errShort, 100*math.Expm1(l.Difference), 100*math.Expm1(*nats))
}
