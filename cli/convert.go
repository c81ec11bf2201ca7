package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

var convertCommand = &cli.Command{
	Name:      "convert",
	Usage:     "plan and write a model whose products toggle less",
	ArgsUsage: "MODEL OUT",
	Description: `MODEL is a folder of safetensors or one such file. OUT is a new folder of the same tensors,
shapes and types; it appears whole or not at all. After an interruption the same command
with --resume goes on where it stopped and ends with the same bytes. A LoRA adapter that lies in
MODEL (adapter_model.safetensors) is converted along; tensors that are no part of the model's
family, such as a vision tower's, stay as they are.

   lowtoggle convert MODEL OUT                           the recipe near-lossless
   lowtoggle convert MODEL OUT --recipe exact            the function kept
   lowtoggle convert MODEL OUT --min-snr 25              another budget
   lowtoggle convert MODEL OUT --tokens FILE --max-loss 0.1%
                                                         the most saved for a rise of perplexity
   lowtoggle convert MODEL OUT --passes reorder,round=4  exactly these passes
   lowtoggle convert MODEL OUT --plan plan.json          what lowtoggle plan decided, or what a
                                                         conversion's lowtoggle.json says it did

Exit status 3: written, but the budget did not allow in every layer what --passes asks for, or
perplexity rose by more than --max-loss on the evaluation tokens.`,
	Flags: flags([]cli.Flag{
		&cli.StringFlag{Name: "plan", Usage: "carry out the plan in `FILE` instead of making one"},
		&cli.BoolFlag{Name: "resume", Usage: "go on with an interrupted conversion, if there is one", DisableDefaultText: true},
	}, planFlags, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL", "OUT")
		if err != nil {
			return err
		}
		o, err := planOptions(c)
		if err != nil {
			return err
		}
		m, err := openModel(args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		start := time.Now()
		b, err := newBudget(c, m, args[0], args[1], o)
		if err != nil {
			return err
		}
		man, did, err := convert(c, m, args[1], o, b)
		if err != nil {
			return err
		}
		var loss *lossJSON
		if b != nil {
			if loss, err = b.verdict(c, args[1]); err != nil {
				return fmt.Errorf("%s is written, but not judged (%w): judge it with %s", args[1], err,
					term.CommandLine(withTokens(c, withArch(c, "verify", args[0], args[1])...)...))
			}
		}
		took := time.Since(start)
		if c.Bool("json") {
			report := convertReport(m, man, args[1], took)
			report.Loss, report.Found = loss, man.Plan.Found
			err = term.JSON(c.App.Writer, report)
		} else {
			printPlan(c.App.Writer, m, man.Plan, layoutOf(c, m))
			if b != nil && b.strange != "" {
				term.Remark(c.App.Writer, "note", b.strange)
			}
			if loss != nil {
				loss.print(c.App.Writer)
			}
			fmt.Fprintf(c.App.Writer, "\n%s %s: %s in %s\ncheck it: %s\n", args[1], did, term.Size(m.Size()), term.Duration(took),
				term.CommandLine(withTokens(c, checkWith(c, man.Plan.Request, "verify", args[0], args[1])...)...))
		}
		if err != nil {
			return err
		}
		return errors.Join(missed(man.Plan), b.keeps(loss, man.Plan.Request.MaxLoss))
	},
}

// checkWith adds the flags with which verify looks at a result as its plan did.
func checkWith(c *cli.Context, r transform.Request, words ...string) []string {
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

// withArch adds the family's file, without which the command would not know the model.
func withArch(c *cli.Context, words ...string) []string {
	if path := c.String("arch"); path != "" {
		words = append(words, "--arch", path)
	}
	return words
}

// withTokens adds the tokens that a plan was made with, and is judged by.
func withTokens(c *cli.Context, words ...string) []string {
	if path := c.String("tokens"); path != "" {
		words = append(words, "--tokens", path)
	}
	return words
}

// convertJSON is what convert --json prints.
type convertJSON struct {
	Output    string                  `json:"output"`
	DropIn    bool                    `json:"drop_in"`
	Bytes     int64                   `json:"bytes"`
	Seconds   float64                 `json:"seconds"`
	Shards    []transform.ShardRecord `json:"shards"`
	Predicted *predict.Ratio          `json:"predicted,omitempty"`
	Tensors   []transform.Outlook     `json:"tensors"`
	Notes     []string                `json:"notes,omitempty"`
	Found     *transform.Found        `json:"found,omitempty"`
	Loss      *lossJSON               `json:"loss,omitempty"` // on evaluation tokens
}

func convertReport(m *weights.Model, man *transform.Manifest, out string, took time.Duration) convertJSON {
	elements := map[string]int{}
	for _, info := range m.Infos() {
		elements[info.Name] = info.Len()
	}
	total := outlookRatio(man.Plan, elements)
	notes := slices.Clone(man.Plan.Notes)
	if note := noSaving(man.Plan, total); note != "" {
		notes = append(notes, note)
	}
	if leavesAdapters(m, man.Plan) {
		notes = append(notes, "adapters: "+othersDoNotFit)
	}
	return convertJSON{out, man.DropIn, m.Size(), took.Seconds(), man.Shards, total,
		append([]transform.Outlook{}, man.Plan.Outlook...), notes, nil, nil}
}

// convert finds or makes the plan and carries it out; did says in a word or two what happened.
func convert(c *cli.Context, m *weights.Model, out string, o transform.Options, b *budget) (man *transform.Manifest, did string, err error) {
	resume := c.Bool("resume")
	if resume {
		if man, err := finished(c, m, out, o); man != nil || err != nil {
			if err == nil {
				err = removeOwn(besideOut(out)) // which it had no time for
			}
			return man, "was finished before", err
		}
	}
	if err := transform.CheckOut(m, out, resume); errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%s: the folder %s is not there: make it first", out, filepath.Dir(filepath.Clean(out)))
	} else if err != nil {
		return nil, "", err
	}
	plan, err := findPlan(c, m, out, o, b)
	if err != nil {
		return nil, "", err
	}
	apply := transform.ApplyOptions{Family: o.Family, Workers: o.Workers, Resume: resume}
	if plan.Request.Inputs != "" && b != nil {
		apply.Inputs = fed{key: b.key} // which is all that Apply refuses other tokens by
		if plan.Request.Inputs == b.key {
			if apply.Inputs, err = b.inputs(c, o); err != nil {
				return nil, "", err
			}
		}
	}
	event, end := term.Progress(c)
	defer end()
	apply.Progress = event
	if man, err = transform.Apply(c.Context, m, plan, out, apply); err != nil {
		return nil, "", err
	}
	return man, "written", b.finish()
}
