package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// The parts of a token file: what a transform may be chosen on, and what only judges it.
const (
	calibrationPart = "calibration"
	evaluationPart  = "evaluation"
)

// openTokens reads the token file that --tokens names; where path is empty, the one in the model's
// folder.
func openTokens(path, modelDir string) (*tokens.File, error) {
	if path == "" {
		path = tokens.Path(modelDir)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such file: name one with --tokens: safetensors with integer tensors [sequences, length], called %s and %s",
			path, calibrationPart, evaluationPart)
	}
	return tokens.Open(path)
}

// judged are the tokens of a part, which models are judged by.
type judged struct {
	tokens.Part
	purpose string // calibrationPart or evaluationPart
	file    string
	split   string // says how the file is divided
}

// partOf takes a part of a token file.
func partOf(f *tokens.File, purpose string) (judged, error) {
	calibration, evaluation, how, err := f.Split()
	if err != nil {
		return judged{}, err
	}
	p := judged{evaluation, purpose, f.Path, how}
	if purpose == calibrationPart {
		p.Part = calibration
	}
	if p.N == 0 {
		return p, fmt.Errorf("%s: %s: name a tensor %s", f.Path, how, purpose)
	}
	return p, nil
}

// predicted counts the tokens whose loss is known: all but the first of each sequence.
func (p judged) predicted() int { return p.N * (p.T - 1) }

// lossJudge says what weights lose on some tokens. It knows a model's arithmetic, and judges any weights
// with that model's names and shapes.
type lossJudge struct {
	tokens  judged
	decoder *forward.Decoder
	layout  *arch.Layout
	step    func() // follows each of the steps
}

// newJudge makes a judge of models like m, which the command line calls path. A nil family is the
// catalogue's.
func newJudge(m *weights.Model, path string, family *arch.Family, p judged, workers int) (*lossJudge, error) {
	if m.Config == nil {
		return nil, fmt.Errorf("%s: there is no config.json with it, without which its loss cannot be computed: give a model's folder", path)
	}
	layout, err := arch.Resolve(m, family)
	if errors.Is(err, arch.ErrUnknownFamily) {
		return nil, fmt.Errorf("%s: its loss cannot be computed: %w: name its family's file with --arch", path, err)
	}
	if err != nil {
		return nil, err
	}
	known := *layout
	known.Unclaimed = slices.DeleteFunc(slices.Clone(layout.Unclaimed), func(name string) bool {
		weight, shift := strings.CutSuffix(name, transform.ShiftSuffix)
		return shift && layout.Claims[weight] != nil
	})
	d, err := forward.New(m, &known)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d.Workers = workers
	return &lossJudge{p, d, layout, func() {}}, nil
}

// steps is how often step is called for one set of weights.
func (j *lossJudge) steps() int { return j.decoder.Blocks() + 1 }

// scores computes the loss of every token. o may be nil.
func (j *lossJudge) scores(ctx context.Context, w forward.Weights, o forward.Observer) (*forward.Scores, error) {
	scores, err := j.run(ctx, w, o)
	if err != nil {
		return nil, fmt.Errorf("on the %s tokens of %s: %w", j.tokens.purpose, j.tokens.file, err)
	}
	return scores, nil
}

// run is Decoder.Run in steps.
func (j *lossJudge) run(ctx context.Context, w forward.Weights, o forward.Observer) (*forward.Scores, error) {
	s, err := j.decoder.Start(ctx, w, j.tokens.Sequences)
	if err != nil {
		return nil, err
	}
	for i := range j.decoder.Blocks() {
		if err := j.decoder.Block(ctx, i, w, s, o); err != nil {
			return nil, err
		}
		j.step()
	}
	scores, err := j.decoder.Score(ctx, w, s, o)
	j.step()
	return scores, err
}

// stored gives the weights of a model as a runtime uses them: with the shifts taken off again that a
// conversion has stored for its epilogues.
func (j *lossJudge) stored(m *weights.Model) forward.Weights {
	return epilogue{forward.Stored(m), m, j.layout}
}

// epilogue takes stored shifts off: subtracting shift·Σx from an output does the same.
type epilogue struct {
	forward.Weights
	model  *weights.Model
	layout *arch.Layout
}

func (e epilogue) Tensor(ctx context.Context, name string) ([]float32, error) {
	values, err := e.Weights.Tensor(ctx, name)
	if err != nil || !has(e.model, name+transform.ShiftSuffix) {
		return values, err
	}
	shift, err := e.Weights.Tensor(ctx, name+transform.ShiftSuffix)
	if err != nil {
		return nil, err
	}
	if len(shift) == 0 || len(values)%len(shift) != 0 {
		return nil, fmt.Errorf("tensor %q: has %d shifts for %d weights: convert the model again", name+transform.ShiftSuffix, len(shift), len(values))
	}
	inputs := len(values) / len(shift)
	for i := range values {
		if e.layout.OutAxis(name) == 0 {
			values[i] -= shift[i/inputs]
		} else {
			values[i] -= shift[i%len(shift)]
		}
	}
	return values, nil
}
