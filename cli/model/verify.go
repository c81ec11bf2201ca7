package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/card"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// Flags whose defaults are the conversion's.
var (
	verifyWorkloadFlag = asConverted(flag.Workload)
	verifyRoleFlag     = asConverted(flag.Role)
)

// asConverted returns a copy of a flag whose default is OUT's.
func asConverted(f *cli.StringFlag) *cli.StringFlag {
	own := *f
	own.DefaultText = "OUT's"
	return &own
}

var Verify = &cli.Command{
	Name:      "verify",
	Usage:     "check a converted model independently, tensor by tensor",
	ArgsUsage: "MODEL OUT",
	Description: `Reads MODEL and its conversion OUT, and relies on nothing else.

   identical    the same bytes
   exact        permuted, or multiplied by signs or powers of two
   compensated  shifted, or part of a norm's scale was moved into the weights
   rescaled     the same codes of a quantised weight with other scales
   lossy        values changed in another way, such as rounded or zeroed
   untouched    the same bytes; the tensor is outside the model's family, or part of a
                quantised weight

SNR is the signal-to-noise ratio of a layer's output relative to MODEL. If convert had
--reference, give verify the same flag to check the SNRs relative to that model.

   lowtoggle verify MODEL OUT
   lowtoggle verify MODEL OUT --tokens FILE
   lowtoggle verify MODEL OUT --tokens FILE --max-loss 0.5%
                                                         exit status 3 above +0.5 % perplexity
   lowtoggle verify MODEL OUT --gpu -o report.html       also a report

With --tokens, compares both models' losses on the evaluation part of FILE, as eval does. It also
shows the output SNR of lossy layers on the inputs that these tokens produce. If OUT passes the
check, --update-card writes the perplexities to OUT/README.md, as in eval. If perplexity rises by
more than --max-loss, the exit status is 3. The default of --max-loss is that of the conversion.

The defaults of --workload and --role are those of the conversion, from OUT/lowtoggle.json.
OUT does not contain convert's --calibration. To repeat convert's prediction, give the same file.

With --gpu, measures the energy of all linear layers of MODEL and OUT. --workload chooses the
phases. Prefill multiplies 8192 tokens. Decode multiplies 16 tokens, and reads the weights from
memory. The table has a total and a row for each kind of layer; each row takes about 40 s.
lowtoggle measure --help explains the SOURCE of --x. With --device 0,1 both cards measure at the
same time. The report ends with their totals and differences.

With --gpu --whole, runs all operations of whole models: decode steps at each --batch with
--context tokens in each sequence, and a prefill of --prompt tokens. The table has joules per
token, time, power and the linear layers' share of the energy. Each step takes about 40 s. MODEL,
its copy and OUT must fit on the card together.

The manifest is OUT/lowtoggle.json, which convert wrote. Exit status 3: MODEL or OUT differs from
the manifest, for example by a truncated shard; the manifest is missing; the tensors do not fit
config.json; perplexity rises by more than --max-loss; or a measurement is invalid, or less
precise than the given --precision. 4: no GPU for --gpu.`,
	Flags: flag.Join([]cli.Flag{outfile.VerifyReportFlag, flag.Tensors, verifyReferenceFlag, flag.Tokens, verifyMaxLossFlag, updateCardFlag, verifyWorkloadFlag, verifyRoleFlag, flag.Arch, flag.Calibration}, card.VerifyFlags, flag.Common),
	Action: func(c *cli.Context) (err error) {
		args, err := flag.Arguments(c, "MODEL", "OUT")
		if err != nil {
			return err
		}
		o, err := flag.Read(c)
		if err != nil {
			return err
		}
		if err := errors.Join(tokensGiven(c), checkUpdateCard(c, 1)); err != nil {
			return err
		}
		if c.IsSet("max-loss") && !c.IsSet("tokens") {
			return exit.Usagef("--max-loss needs tokens to measure the loss on: give --tokens FILE")
		}
		limit, err := readMaxLoss(c)
		if err != nil {
			return err
		}
		path := c.String("report")
		if err := outfile.CheckOutput(path, args, outfile.HTML); err != nil {
			return err
		}
		src, err := flag.OpenModel(c.Context, args[0])
		if err != nil {
			return err
		}
		defer src.Close()
		out, err := openConverted(c.Context, src, args[0], args[1], c.String("arch"))
		if d := damaged(err); d != nil {
			return reportDamaged(c, src, args, d, o)
		}
		if err != nil {
			return err
		}
		defer out.Close()
		if isModel(src, args[1]) {
			return exit.Usagef("%s and %s are the same: give the source as MODEL, and its conversion as OUT", args[0], args[1])
		}
		if err := inOrder(src, out, args); err != nil {
			return err
		}
		taken, err := asMade(c, out, &o)
		if err != nil {
			return err
		}
		q, cards, err := card.ReadVerify(c, o)
		if err != nil {
			return err
		}
		if cards != nil {
			defer exit.CloseAll(&err, q.Close, cards.Close)
		}
		var reference *weights.Model
		if path := c.String("reference"); path != "" {
			if reference, err = flag.OpenModel(c.Context, path); err != nil {
				return err
			}
			defer reference.Close()
		}
		if err := q.CheckWhole(src, out); err != nil {
			return err
		}
		judge, err := verifyJudge(c, src, args[0], o)
		if err != nil {
			return err
		}
		r, err := verifyModels(c, src, out, reference, o)
		if err != nil {
			return err
		}
		r.taken = taken
		var judging, metering error
		switch {
		case judge == nil:
			r.tokens = unjudged(src, args[0], o)
		case r.OK:
			judging = r.judge(c, judge, src, out)
		}
		switch {
		case cards != nil && r.OK && q.Whole():
			var whole *measure.WholeReport
			if whole, metering = q.MeasureWhole(c, cards, src, out); whole != nil {
				r.energy().Whole = whole
			}
		case cards != nil && r.OK:
			var measured *measure.ModelReport
			measured, metering = q.Measure(c, cards, src, out)
			r.measured(measured, q.Unsplit)
		}
		switch w := c.App.Writer; {
		case c.Bool("json"):
			err = term.JSON(w, r)
		case c.Bool("bench") && r.Energy != nil && r.Energy.Measured != nil:
			card.BenchModels(w, r.Energy.Measured)
		default:
			r.print(w, c.Bool("tensors"))
			r.hint(c, src, args, o.Family != nil)
			if r.Loss != nil {
				remarkLimit(w, withinMaxLoss(r.Loss.rise, r.limit(limit)))
			}
			if judge != nil && !r.OK {
				term.Remark(w, "note", "the loss was not measured, because OUT did not pass the check")
			}
			if cards != nil && !r.OK {
				term.Remark(w, "note", "the energy was not measured, because OUT did not pass the check")
			}
		}
		if err == nil && path != "" {
			err = r.writePage(c, path, src, out, args, o)
		}
		if err := errors.Join(judging, metering, err); err != nil {
			return err
		}
		switch {
		case !r.OK && c.Bool("json") && len(r.Problems) > 0:
			return fmt.Errorf("%w: %s", exit.ErrShort, r.Problems[0])
		case !r.OK || !r.measurementHolds(false):
			return exit.ErrShort
		case !r.measurementHolds(c.IsSet("precision")):
			return fmt.Errorf("%w: the measured change of energy of OUT or of the source's copy is less precise than --precision ±%s: give a longer --time", exit.ErrShort, c.String("precision"))
		}
		return errors.Join(r.aboveMaxLoss(args[1], limit), unfit(c, src))
	},
}

// reportDamaged prints the report of a conversion that cannot be opened, and returns an error with [exit.ErrShort].
func reportDamaged(c *cli.Context, src *weights.Model, args []string, d *damagedError, o flag.Options) error {
	r := &verifyJSON{Report: &verify.Report{Tensors: []verify.Tensor{}, Problems: []string{d.Error()}, DropIn: d.manifest.DropIn, Plan: d.manifest.Plan}}
	if c.Bool("json") {
		if err := term.JSON(c.App.Writer, r); err != nil {
			return err
		}
	} else {
		r.print(c.App.Writer, false)
		r.hint(c, src, args, o.Family != nil)
	}
	switch {
	case c.String("report") != "":
		return fmt.Errorf("%w: OUT could not be opened, so %s was not written", exit.ErrShort, c.String("report"))
	case c.Bool("json"):
		return fmt.Errorf("%w: %w", exit.ErrShort, d)
	}
	return exit.ErrShort
}

// verifyJSON is the output of verify --json.
type verifyJSON struct {
	*verify.Report
	// Untouched are the tensors outside the family. They did not change.
	Untouched []arch.UnclaimedGroup `json:"untouched,omitempty"`
	Loss      *lossJSON             `json:"loss,omitempty"`
	OnInputs  *onInputsJSON         `json:"on_inputs,omitempty"`
	Energy    *energyJSON           `json:"energy,omitempty"`
	Card      string                `json:"card,omitempty"` // model card that has the perplexity now

	workload cost.Workload
	role     cost.Role
	taken    string // flags with the values in OUT's manifest; empty if these are the defaults
	// lossBefore is the source's loss if the output's loss is unknown.
	lossBefore *float64
	tokens     string // token file of the model, if --tokens was not given

	checked      bool // SNRs were checked against the reference
	incomparable int  // number of lossy layers whose SNR on inputs is unknown
}

type energyJSON struct {
	Predicted *predict.Ratio `json:"predicted,omitempty"`
	// Kernels are the kernels that Predicted assumes for a model with quantised layers.
	Kernels []string `json:"kernels,omitempty"`
	// Coverage is the part of the model that Predicted covers; nil: all linear layers.
	Coverage *predict.Coverage `json:"coverage,omitempty"`
	// RelativeTo names the baseline of Predicted; empty: the source.
	RelativeTo string               `json:"predicted_relative_to,omitempty"`
	Measured   *measure.ModelReport `json:"measured,omitempty"`
	// MeasuredTo names the baseline of Measured; empty: the baseline of Predicted.
	MeasuredTo string               `json:"measured_relative_to,omitempty"`
	Whole      *measure.WholeReport `json:"whole,omitempty"`

	unsplit string // why no phase is split by component
}

// asMade sets the workload and the role from the manifest of out, unless flags give them. It returns the values as
// flags if they differ from the flags' defaults.
func asMade(c *cli.Context, out *weights.Model, o *flag.Options) (flags string, err error) {
	man, err := plan.ManifestOf(out)
	if plan.Unread(err) {
		return "", err
	}
	if err != nil || man.Plan == nil { // Verify reports a wrong manifest
		return "", nil
	}
	var taken []string
	if was := man.Plan.Request.Workload; !c.IsSet("workload") && was.Prefill+was.Decode > 0 && was != o.Workload {
		o.Workload = was
		taken = append(taken, "--workload", was.String())
	}
	if was := man.Plan.Request.Role; !c.IsSet("role") && was != o.Role {
		o.Role = was
		taken = append(taken, "--role", was.String())
	}
	return term.Words(taken...), nil
}

// verifyModels compares both models and predicts the energy, with progress.
func verifyModels(c *cli.Context, src, out, reference *weights.Model, o flag.Options) (*verifyJSON, error) {
	event, end := term.Progress(c)
	defer end()
	rep, err := transform.Verify(c.Context, src, out, transform.VerifyOptions{Family: o.Family, Reference: reference, Workers: o.Workers, Progress: event})
	switch {
	case errors.Is(err, verify.ErrNoReference):
		return nil, exit.Usage(fmt.Errorf("--reference: %w", err))
	case err != nil:
		return nil, err
	}
	r := &verifyJSON{Report: rep, workload: o.Workload, role: o.Role, checked: reference != nil}
	layout, _ := arch.Resolve(src, o.Family)
	if layout != nil {
		r.Untouched = layout.UnclaimedGroups()
	}
	if !rep.OK { // no prediction holds for a wrong output
		return r, nil
	}
	before, baseline, err := codesBefore(src, rep, o.Family)
	if err != nil {
		return nil, err
	}
	changes, err := codedChanges(before, out, layout)
	if err != nil {
		return nil, err
	}
	coded := map[string]bool{}
	for _, ch := range changes {
		coded[ch.Codes.Before.Name], coded[ch.Codes.Before.Tensors[0].Name] = true, true
	}
	for _, t := range rep.Tensors {
		a, ok := predictable(src, t)
		b, kept := out.Tensor(t.Name)
		// Predictions in different types are not comparable.
		if ok && kept && !coded[t.Name] && a.DType == b.DType {
			scaled := t.Relation != nil && t.Relation.RowsScaled+t.Relation.ColsScaled > 0
			changes = append(changes, predict.Change{Before: a, After: b, OutAxis: layout.OutAxis(t.Name), Rescaled: scaled})
		}
	}
	total, err := predict.Conversion(c.Context, o.Calibration, changes, predict.ConversionOptions{Role: o.Role, Workload: o.Workload, Progress: event})
	if err != nil {
		return nil, err
	}
	if total != nil {
		r.Energy = &energyJSON{Predicted: total, Kernels: predict.Kernels(changes, o.Role, o.Workload), Coverage: predict.CoverageOf(src, layout), RelativeTo: baseline}
	}
	return r, nil
}

// codesBefore describes the quantised weights to compare the output's weights with, and names them. If the plan
// stores the weights in another format, these are the codes with which convert starts. Otherwise they are the
// source's codes, and the name is empty.
func codesBefore(src *weights.Model, rep *verify.Report, family *arch.Family) (before *quant.Description, baseline string, err error) {
	if rep.Plan == nil || rep.Plan.Request.Format == "" {
		before, err = quant.Describe(src)
		return before, "", err
	}
	f, err := quantise.Parse(rep.Plan.Request.Format)
	if err != nil {
		return nil, "", err
	}
	target, err := quantise.NewTarget(src, family, f, leaves(rep.Plan.Request.Selection))
	if err != nil {
		return nil, "", err
	}
	return target.Description, transform.FormatBaseline, nil
}

// codedChanges lists the quantised linear layers that are in before and in out and have readable values.
func codedChanges(before *quant.Description, out *weights.Model, layout *arch.Layout) (list []predict.Change, err error) {
	after, err := quant.Describe(out)
	if err != nil {
		return nil, err
	}
	for _, a := range before.Weights {
		b, ok := after.Weight(a.Name)
		if !ok || a.Operand() != b.Operand() || !slices.Equal(a.Shape, b.Shape) || a.CanRead() != nil || b.CanRead() != nil || !layout.IsLinearWeight(a) {
			continue
		}
		list = append(list, predict.Change{Codes: &predict.Codes{Before: a, After: b}, OutAxis: layout.OutAxis(a.Name)})
	}
	return list, nil
}

// predictable returns the source's tensor of a linear layer. ok is false if its energy cannot be predicted: the
// tensor is empty, or the values of its type are unknown.
func predictable(src *weights.Model, t verify.Tensor) (a weights.Tensor, ok bool) {
	if !t.Linear {
		return a, false
	}
	a, _ = src.Tensor(t.Name)
	_, known := a.DType.Format()
	return a, known && a.Len() > 0
}

// measured adds the measured energy. m may be nil.
func (r *verifyJSON) measured(m *measure.ModelReport, unsplit string) {
	if m == nil {
		return
	}
	r.energy().Measured, r.Energy.unsplit = m, unsplit
	if r.Energy.RelativeTo != "" {
		r.Energy.MeasuredTo = "the source's weights as they are stored, in their own kernel"
	}
}

// energy returns r.Energy, and creates it if it is nil.
func (r *verifyJSON) energy() *energyJSON {
	if r.Energy == nil {
		r.Energy = &energyJSON{}
	}
	return r.Energy
}

func (r *verifyJSON) measurementHolds(precise bool) bool {
	e := r.Energy
	return e == nil || (e.Measured == nil || e.Measured.Holds(precise)) && (e.Whole == nil || e.Whole.Holds(precise))
}
