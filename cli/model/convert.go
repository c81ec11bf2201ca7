package model

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

var Convert = &cli.Command{
	Name:      "convert",
	Usage:     "write a converted model whose matrix products toggle fewer bits",
	ArgsUsage: "MODEL OUT",
	Description: `MODEL is a folder of safetensors files, or a single file. OUT is a new or empty folder, which
appears whole or not at all. Without --format, the tensors of OUT have the names, shapes and
types of MODEL's; only shift=S/epilogue adds tensors. The other files of MODEL are copied, such
as tokenizer.json and tokens.safetensors; keep texts for evaluation elsewhere if OUT must not
contain them. If MODEL is a single file, the configuration files beside it are copied. Weights in
other formats (pytorch_model.bin) and files that are not part of a model (.git) are left out; the
report lists them. OUT has MODEL's README.md as its model card, with a description of the
changes. A LoRA adapter in MODEL (adapter_model.safetensors) is converted too. Tensors outside
the model's family, such as those of a vision tower, do not change. In a quantised model, recipes
also choose codes and scales within their budget (docs/quantised.md).

If the search for a plan is interrupted, run the same command again: it continues from the
results in OUT.search. If writing is interrupted, add --resume; the result has the bytes of an
uninterrupted run. If OUT is already the result of the same conversion, nothing is written.
--force replaces the result of another conversion.

--format quantises an unquantised model for runtimes that load the format. The formats are fp8,
fp8-block, int8, int4, int4-asym, mxfp4 and nvfp4 in the layout of compressed-tensors, and
deepseek-fp8. NAME=GROUP sets the size of INT4 groups. Linear layers within blocks are quantised,
except routers; lm_head and embeddings are not. With --format, --passes may contain scales,
zeros, round, grid, trellis and compensate, or be empty. The default is scales if the format has
a choice of scales; with tokens, compensate is added. docs/quantising.md describes the formats.

   lowtoggle convert MODEL OUT                           by the recipe near-lossless
   lowtoggle convert MODEL OUT --workload decode         the same, for decode
   lowtoggle convert MODEL OUT --recipe exact            exact changes only
   lowtoggle convert MODEL OUT --min-snr 25              output SNR of 25 dB or more
   lowtoggle convert MODEL OUT --tokens FILE --max-loss 0.1%
                                                         largest saving at +0.1 % perplexity
   lowtoggle convert MODEL OUT --tokens FILE --max-loss 0.1% --device 0
                                                         the same search on a GPU
   lowtoggle convert MODEL OUT --passes reorder,round=4  exactly these passes
   lowtoggle convert MODEL OUT --format int4 --tokens FILE
                                                         a quantised checkpoint
   lowtoggle convert MODEL OUT -o report.html            also a report
   lowtoggle convert MODEL OUT --plan plan.json          apply a plan, or the lowtoggle.json of
                                                         an earlier conversion
   lowtoggle convert MODEL OUT --plan plan.json --part 3/16
                                                         writes one of 16 parts, on any machine
   lowtoggle convert MODEL OUT --plan plan.json --finish
                                                         makes OUT from all parts

--part K/N writes the K-th of N parts into OUT.partial, in any order and any number of times.
--part auto takes the part from an array job: K and N from Slurm, or K from JOB_COMPLETION_INDEX
(Kubernetes) and N from LOWTOGGLE_PARTS. With auto/N, Slurm's task numbers must be 1 to N.
--finish checks the parts without reading their data again. Exit status 75: run this part again.
The cause is the network, a full or vanished disk, an interrupt, or another process that writes
the same part. docs/scale.md has more.

Exit status 3: OUT was written, but one of these is true: the budget did not allow --passes in
every layer; perplexity rose by more than --max-loss on the evaluation tokens; no weight was
changed, so OUT is a copy; the tensors do not fit config.json.`,
	Flags: flag.Join([]cli.Flag{
		outfile.ReportFlag,
		&cli.StringFlag{Name: "plan", Usage: "apply the plan in `FILE` instead of making one"},
		partFlag, finishFlag,
		forceFlag,
		&cli.BoolFlag{Name: "resume", Usage: "continue an interrupted conversion, if there is one", DisableDefaultText: true},
	}, planFlags(convertTokensFlag), folderFlags, flag.Common),
	Action: func(c *cli.Context) (err error) {
		defer func() { err = ofOption(c, withoutDevice(err)) }()
		args, err := flag.Arguments(c, "MODEL", "OUT")
		if err != nil {
			return err
		}
		if args[0], _, err = flag.Place(args[0]); err != nil {
			return err
		}
		if args[1], _, err = flag.Place(args[1]); err != nil {
			return err
		}
		if inParts(c) {
			return convertInParts(c, args)
		}
		path := c.String("output")
		if err := outfile.CheckOutput(path, args, outfile.HTML); err != nil {
			return err
		}
		o, err := planOptions(c)
		if err != nil {
			return err
		}
		m, err := flag.OpenModel(c.Context, args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		if err := suitRecipe(c, m, &o); err != nil {
			return err
		}
		closeReference, err := openReference(c, &o)
		defer exit.CloseAll(&err, closeReference)
		if err != nil {
			return err
		}
		folder, err := folderOptions(c, m)
		if err != nil {
			return err
		}
		start := time.Now()
		var closeDevice func() error
		o.Tokens, closeDevice, err = givenTokens(c, m, args[0], args[1], o)
		defer exit.CloseAll(&err, closeDevice)
		if err != nil {
			return err
		}
		r, did, err := convert(c, m, args, o, folder)
		if err != nil {
			return err
		}
		took := time.Since(start)
		var loss *lossJSON
		if r.Loss != nil {
			loss = newLoss(r.Loss)
		}
		hint, left := unusedCodes(c, m, args[0], o, r.Plan), leftSearch(args[1], o.Tokens)
		if c.Bool("json") {
			report := convertReport(m, layoutOf(c, m), r.Manifest, args[1], took)
			if hint != "" {
				report.Notes = append(report.Notes, "hint: "+hint)
			}
			if left != "" {
				report.Notes = append(report.Notes, "left over: "+left)
			}
			if results := resultsOf(m, r.Manifest.LeftOut); results != "" {
				report.Notes = append(report.Notes, results)
			}
			if texts := copiedTokens(m, r.Manifest.LeftOut); texts != "" {
				report.Notes = append(report.Notes, texts)
			}
			report.Loss, report.Found, report.Finished = loss, r.Plan.Search, strings.HasPrefix(did, alreadyThere)
			err = term.JSON(c.App.Writer, report)
		} else {
			printPlan(c.App.Writer, m, r.Plan, layoutOf(c, m))
			if loss != nil {
				loss.print(c.App.Writer)
			}
			fmt.Fprintf(c.App.Writer, "\n%scheck the result: %s\n", term.Wrap(printable.Quote(args[1])+" "+done(did, sizeOf(m, args[1], r.Manifest), took), "", "  ", term.Width),
				term.CommandLine(withTokens(c, withReference(c, checkWith(c, r.Plan.Request, "verify", args[0], args[1])...)...)...))
			printFolder(c.App.Writer, m, folder, r.Manifest.LeftOut)
			if left != "" {
				term.Remark(c.App.Writer, "left over", left)
			}
			if hint != "" {
				term.Remark(c.App.Writer, "hint", hint)
			}
		}
		if err == nil && path != "" {
			err = writeConvertPage(c, path, m, r, args, o, took)
		}
		if err != nil {
			return err
		}
		short := errors.Join(missed(r.Plan), nothingLeft(m, r.Plan), unfit(c, m), overBudget(args[1], r))
		if short == nil {
			short = unchanged(r, args[1])
		}
		return short
	},
}

// alreadyThere describes an OUT that the same conversion wrote before.
const alreadyThere = "was already finished"

// done describes what happened to OUT, and its size.
func done(did string, size int64, took time.Duration) string {
	if strings.HasPrefix(did, alreadyThere) {
		return fmt.Sprintf("%s: %s; nothing was written", did, term.Size(size))
	}
	return fmt.Sprintf("%s: %s in %s", did, term.Size(size), term.Duration(took))
}

// checkWith adds to a verify command the flags that the plan of the result needs.
func checkWith(c *cli.Context, r plan.Request, words ...string) []string {
	if r.Workload != cost.DefaultWorkload {
		words = append(words, "--workload", r.Workload.String())
	}
	if r.Role != cost.Stationary {
		words = append(words, "--role", r.Role.String())
	}
	if path := c.String("calibration"); path != "" {
		words = append(words, "--calibration", path)
	}
	return withArch(c, words...)
}

// withArch adds --arch, if given, to a command's words. Without --arch, the command would not recognise the model.
func withArch(c *cli.Context, words ...string) []string {
	return withFamily(c.String("arch"), words...)
}

// withFamily adds --arch FILE to a command's words, unless file is empty.
func withFamily(file string, words ...string) []string {
	if file != "" {
		words = append(words, "--arch", file)
	}
	return words
}

// withTokens adds --tokens, if given, to a command's words.
func withTokens(c *cli.Context, words ...string) []string {
	if path := c.String("tokens"); path != "" {
		words = append(words, "--tokens", path)
	}
	return words
}

// withDevice adds the device of a plan's calibration statistics, if applying the plan computes them again.
func withDevice(c *cli.Context, p *plan.Plan, words ...string) []string {
	if p.Request.Statistics != "" {
		words = append(words, "--device", c.String("device"))
	}
	return words
}

// convertJSON is the output of convert --json.
type convertJSON struct {
	Output    string             `json:"output"`
	DropIn    bool               `json:"drop_in"`
	Bytes     int64              `json:"bytes"`
	Seconds   float64            `json:"seconds"`
	Shards    []plan.Shard       `json:"shards"`
	Predicted *predict.Ratio     `json:"predicted,omitempty"`
	Kernels   []string           `json:"kernels,omitempty"`   // kernels that the prediction assumes
	Coverage  *predict.Coverage  `json:"coverage,omitempty"`  // the part of the model that is predicted; absent: all linear layers
	Quantised []quant.Copied     `json:"quantised,omitempty"` // weights copied byte for byte
	Tensors   []plan.Prediction  `json:"tensors"`
	Notes     []string           `json:"notes,omitempty"`
	Found     *plan.Search       `json:"found,omitempty"`
	Loss      *lossJSON          `json:"loss,omitempty"` // on evaluation tokens
	LeftOut   []weights.Leftover `json:"left_out,omitempty"`
	Finished  bool               `json:"already_finished,omitempty"` // the same conversion was finished before; nothing was written
}

func convertReport(m *weights.Model, layout *arch.Layout, man *plan.Manifest, out string, took time.Duration) convertJSON {
	total := transform.Predicted(m, man.Plan)
	notes := slices.Clone(man.Plan.Notes)
	if note := noSaving(man.Plan, total); note != "" {
		notes = append(notes, note)
	}
	if warning := lowSNR(man.Plan); warning != "" {
		notes = append(notes, "warning: "+warning)
	}
	if transform.ScalesLayers(man.Plan) {
		notes = append(notes, "warning: "+transform.ServeScaled)
	}
	if leavesAdapters(m, man.Plan) {
		notes = append(notes, "adapters: "+othersDoNotFit)
	}
	return convertJSON{out, man.DropIn, sizeOf(m, out, man), took.Seconds(), man.Shards, total, man.Plan.Kernels, predict.CoverageOf(m, layout), man.Plan.Quantised,
		append([]plan.Prediction{}, man.Plan.Predictions...), notes, nil, nil, man.LeftOut, false}
}

// convert finds or makes the plan and applies it. did describes the outcome in a few words.
func convert(c *cli.Context, m *weights.Model, args []string, o transform.Options, folder transform.FolderOptions) (r *transform.Conversion, did string, err error) {
	out, resume := args[1], c.Bool("resume")
	release, err := holdSearch(out, o.Tokens)
	if err != nil {
		return nil, "", err
	}
	defer exit.CloseAll(&err, release)
	event, end := term.Progress(c)
	defer end()
	o.Progress = counted(o, len(searchStages), event)
	man, old, err := standing(c, m, out, o)
	if err != nil {
		return nil, "", err
	}
	if man != nil {
		if was := man.Plan.Request; resume && !c.IsSet("plan") && !slices.ContainsFunc(requestFlags, c.IsSet) && spell(was) != spell(requestOf(m, o)) {
			term.Notice(c, "--resume: %s was finished with the earlier options, which are not the defaults: %s", out, withRecipe(m, o, was))
		}
		r := &transform.Conversion{Plan: man.Plan, Manifest: man}
		if err := errors.Join(removeLeft(out, o.Tokens), compare(c, r, args, o)); err != nil { // the earlier run may have ended before these steps
			return nil, "", err
		}
		if c.Bool("force") {
			return r, alreadyThere + " by the same conversion", nil
		}
		return r, alreadyThere, nil
	}
	given, err := findPlan(c, m, out, o)
	if err != nil {
		return nil, "", err
	}
	if given == nil {
		noticeSearch(c, out, o.Tokens)
	}
	r, err = transform.Convert(c.Context, m, out, transform.ConvertOptions{Options: o, Given: given, Resume: resume, Replace: old, Folder: folder,
		Store: storeOf(out), Version: c.App.Version})
	if errors.Is(err, plan.ErrInvalid) && c.IsSet("plan") {
		err = fmt.Errorf("%s: %w", c.String("plan"), err)
	}
	switch {
	case err == nil:
		if old != nil {
			return r, "written in place of the result of " + withRecipe(m, o, old.Manifest.Plan.Request), finish(o.Tokens)
		}
		return r, "written", finish(o.Tokens)
	case old == nil && errors.Is(err, apply.ErrOut) && errors.Is(err, fs.ErrExist) && isConversion(out):
		return nil, "", exit.OutputExists(weights.FileErrorf(out, "another process wrote this folder during this conversion: run the same command again to check it, or choose a new folder"))
	case errors.Is(err, fs.ErrNotExist) && outfile.CheckParent(out) != nil:
		return nil, "", outfile.CheckParent(out)
	case r == nil && given == nil:
		return nil, "", planFailed(c, o.Tokens, err)
	case r == nil || r.Manifest == nil:
		return nil, "", err
	}
	return nil, "", errors.Join(notCompared(c, args, "was written", err), finish(o.Tokens))
}

// storeOf returns the bucket's folder that out names; nil for a path. out was checked before.
func storeOf(out string) apply.Store {
	if _, folder, err := flag.Place(out); err == nil && folder != nil {
		return folder
	}
	return nil
}

// compare adds the losses to a conversion that an earlier run finished.
func compare(c *cli.Context, r *transform.Conversion, args []string, o transform.Options) error {
	if o.Tokens == nil {
		return nil
	}
	out, err := flag.OpenModel(c.Context, args[1])
	if err != nil {
		return err
	}
	defer out.Close()
	loss, err := o.Tokens.Compare(c.Context, out, o.Progress)
	if err != nil {
		return notCompared(c, args, alreadyThere, err)
	}
	r.Loss = loss
	return nil
}

// notCompared rewords the error of a result whose loss is unknown. did describes what happened to the result.
func notCompared(c *cli.Context, args []string, did string, err error) error {
	return fmt.Errorf("%s %s, but its loss was not measured (%w): measure the loss with\n%s%s", args[1], did, err, term.CommandIndent,
		term.CommandLine(withTokens(c, withArch(c, "verify", args[0], args[1])...)...))
}
