package transform

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// card returns the model card of a result: the source's card with a base model and a section about the conversion.
// The card depends on the model, the plan and the loss alone. If the loss was not measured, loss is nil.
func (t Table) card(m *weights.Model, p *plan.Plan, layout *arch.Layout, folder FolderOptions, loss *evaluate.Comparison, readme []byte) ([]byte, error) {
	base := folder.BaseModel
	if base == "" {
		base, _ = BaseModel(m)
	}
	about := card.Base{Model: base}
	if p.Request.Format != "" || slices.ContainsFunc(p.Steps, t.lossy) {
		about.Relation = "quantized"
	}
	text, _ := card.Write(readme, about, t.cardSection(m, p, layout, base, folder, loss))
	return text, nil
}

// lossy reports whether a step belongs to a lossy pass.
func (t Table) lossy(s *plan.Step) bool {
	r, ok := t.Lookup(s.Pass)
	return ok && r.Class == pass.Lossy
}

// cardSection returns the section about the conversion: the changes, the predicted saving, the accuracy as far as it
// is known, and the command to repeat the conversion.
func (t Table) cardSection(m *weights.Model, p *plan.Plan, layout *arch.Layout, base string, folder FolderOptions, loss *evaluate.Comparison) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("## Converted by lowtoggle to use less energy\n")
	line("The weights are those of %s, changed so that a GPU's wires toggle less. [%s](%[2]s) has the plan and checksums.", base, plan.ManifestName)
	switch {
	case p.Request.Format != "":
		line("The weights are stored as %s.", p.Request.Format)
	case p.DropIn:
		line("Names, shapes and types of all tensors are unchanged, so runtimes load this folder like the original.")
	default:
		line("**Not drop-in**: a runtime must apply the stored shifts (tensors `*%s`).", weights.ShiftSuffix)
	}
	line("\n### What was changed\n")
	if kinds := t.Summary(m, p, layout); len(kinds) > 0 {
		line("| kind of layer | layers | %s | %s | predicted change of these layers' energy |\n|---|---|---|---|---|", changeHead(p), snrHead(p))
		for _, k := range kinds {
			line("| %s | %d | %s | %s | %s |", k.Kind, k.Layers, treatments(k), cardDecibels(k.LowestSNR), cardChange(k.Energy != nil, func() float64 { return k.Energy.Relative }))
		}
	} else {
		line("No linear layer was changed.")
	}
	if n := indexSteps(p); n > 0 {
		line("\nExact passes permuted, negated or scaled %s; %s.", amount(n, "group of channels", "groups of channels"), sameFunction(p))
	}
	if ScalesLayers(p) {
		line("\n**How to serve it**: %s.", ServeScaled)
	}
	if !p.Request.Selection.Empty() || p.Request.KeepRouters {
		line("\n%s", selectionText(p.Request))
	}
	line("\n### Energy\n")
	if total := Predicted(m, p); total != nil {
		line("Predicted, not measured: %s for %s (95 %% interval %s to %s; calibration %s).", percent(total.Relative-1), products(p),
			percent(total.Interval[0]-1), percent(total.Interval[1]-1), total.Calibration)
		line("This is a share of the GPU's energy in linear layers%s", energyBase(p))
	} else {
		line("Not predicted.")
	}
	line("\n### Accuracy\n")
	line("%s", accuracyText(p, loss))
	line("\n### How to repeat it\n\n```\nlowtoggle convert MODEL OUT --plan %s%s%s\nlowtoggle verify MODEL OUT%s\n```\n",
		plan.ManifestName, repeatFlags(p), folderFlags(folder), verifyFlags(p))
	line("MODEL is the folder of %s. The plan was made with `%s` by %s.", base, requestText(p.Request), strings.TrimSpace("lowtoggle "+p.Tool))
	return b.String()
}

// sameFunction returns a clause: in which arithmetic exact passes keep the model's function.
func sameFunction(p *plan.Plan) string {
	if ScalesLayers(p) {
		return "the model's function stays the same if it is computed in BF16 or FP32"
	}
	return "the model's function stays the same"
}

// treatments lists the changes of a kind of layer, with numbers of layers if the changes differ.
func treatments(k KindSummary) string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(k.Treatments)) {
		text := what
		if text == "" {
			text = "none"
		}
		if len(k.Treatments) > 1 {
			text = fmt.Sprintf("%d × %s", k.Treatments[what], text)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func cardDecibels(snr *float64) string {
	if snr == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f dB", *snr)
}

func cardChange(known bool, relative func() float64) string {
	if !known {
		return "–"
	}
	return percent(relative() - 1)
}

// percent formats a change with its sign.
func percent(change float64) string {
	v := math.Round(1000*change) / 10
	switch {
	case v == 0:
		return "0.0 %"
	case v < 0:
		return fmt.Sprintf("−%.1f %%", -v)
	}
	return fmt.Sprintf("+%.1f %%", v)
}

// snrHead returns the head of the column of output SNRs. It names the inputs if all SNRs are on the layers' real inputs.
func snrHead(p *plan.Plan) string {
	real, other := false, false
	for _, o := range p.Predictions {
		real, other = real || o.InputSNR != nil, other || o.SNR != nil || o.SampleSNR != nil
	}
	if real && !other {
		return "lowest output SNR of a layer, on its inputs from the calibration tokens"
	}
	return "lowest output SNR of a layer"
}

// changeHead is the heading of the column with the changes. In a new format, nearest codes are not listed as changes.
func changeHead(p *plan.Plan) string {
	if p.Request.Format != "" {
		return "change beyond the nearest codes"
	}
	return "change of values"
}

// products describes the matrix products of the prediction. If the plan's kernels determine the role of the weights,
// the role is left out.
func products(p *plan.Plan) string {
	if len(p.Kernels) > 0 {
		return p.Request.Workload.String()
	}
	return fmt.Sprintf("%s, weights %s", p.Request.Workload, p.Request.Role)
}

// energyBase ends the sentence about the share of energy: what the share is relative to, and how to measure energy.
func energyBase(p *plan.Plan) string {
	if p.Request.Format != "" {
		return ", relative to " + FormatBaseline + ". `lowtoggle verify MODEL OUT --gpu` measures the energy relative to MODEL."
	}
	return ". `lowtoggle verify MODEL OUT --gpu` measures it."
}

// indexSteps counts the groups of channels that exact passes change.
func indexSteps(p *plan.Plan) int {
	indices := map[string]bool{}
	for _, s := range p.Steps {
		if s.Index != "" {
			indices[s.Index] = true
		}
	}
	return len(indices)
}

// selectionText says which weights the passes did not change.
func selectionText(r plan.Request) string {
	var parts []string
	if len(r.Only) > 0 {
		parts = append(parts, "Only weights that match these patterns were changed: `"+strings.Join(r.Only, "`, `")+"`.")
	}
	if len(r.Ignore) > 0 {
		parts = append(parts, "Not changed: `"+strings.Join(r.Ignore, "`, `")+"`.")
	}
	if r.KeepRouters {
		parts = append(parts, "Lossy passes did not change the routers.")
	}
	return strings.Join(parts, " ")
}

// measuredText describes the change of perplexity on evaluation tokens.
func measuredText(p *plan.Plan, loss *evaluate.Comparison) string {
	unused := ""
	if p.Search != nil {
		unused = ", which the search did not use"
	}
	text := fmt.Sprintf("Measured on %d evaluation tokens%s: %s.", loss.Tokens.Predicted(), unused, changeText(loss))
	if p.Request.MaxLoss != nil {
		text += fmt.Sprintf(" The budget was %s.", rise(elementary.Exp(*p.Request.MaxLoss)))
	}
	return text + " " + measureCommand + " measures the perplexity again and writes it here."
}

// changeText is a clause with the perplexities before and after, and their change.
func changeText(loss *evaluate.Comparison) string {
	ratio, low, high := loss.PerplexityRatio()
	text := fmt.Sprintf("the perplexity changes from %.6g to %.6g (%s", elementary.Exp(loss.Before), elementary.Exp(loss.After), rise(ratio))
	if !math.IsInf(high, 0) {
		text += fmt.Sprintf("; 95 %% interval %s to %s", rise(low), rise(high))
	}
	return text + ")"
}

// rise formats a ratio of perplexities as a change, with enough digits for small changes.
func rise(ratio float64) string {
	return strings.Replace(fmt.Sprintf("%+.3f %%", 100*(ratio-1)), "-", "−", 1)
}

// measureCommand measures a result's perplexity and writes it to the card.
const measureCommand = "`lowtoggle eval MODEL OUT --tokens FILE --update-card`"

// accuracyText describes the result's accuracy as far as it is known. If the loss was not measured, loss is nil.
func accuracyText(p *plan.Plan, loss *evaluate.Comparison) string {
	if loss != nil {
		return measuredText(p, loss)
	}
	text, known := plannedAccuracy(p)
	if !known {
		text = strings.TrimSpace("The perplexity was not measured. " + text)
	}
	if !lossless(p) {
		text += " " + measureCommand + " measures the perplexity and writes it here."
	}
	return text
}

// plannedAccuracy describes the accuracy and the budget that a plan states. known is false if the plan states no
// accuracy.
func plannedAccuracy(p *plan.Plan) (text string, known bool) {
	if p.Search != nil {
		if t := p.Search.Best(); t != nil {
			text := fmt.Sprintf("On held-out calibration tokens the loss rises by %.6f nats per token", t.Loss)
			if t.Interval != nil {
				text += fmt.Sprintf(" (95 %% interval %.6f to %.6f)", t.Interval[0], t.Interval[1])
			}
			if p.Request.MaxLoss != nil {
				text += fmt.Sprintf("; the budget was a rise of the perplexity by at most %.3g %%", 100*elementary.Expm1(*p.Request.MaxLoss))
			}
			return text + ".", true
		}
	}
	switch {
	case lossless(p) && ScalesLayers(p):
		return "No value lost precision: the result computes the function of the original in BF16 or FP32.", true
	case lossless(p):
		return "No value lost precision: the result computes the function of the original.", true
	case p.Request.MinSNR != nil:
		return fmt.Sprintf("The budget was an output SNR of at least %g dB in every layer.", *p.Request.MinSNR), false
	}
	return "", false
}

// lossless reports whether a plan keeps the format of all weights and all its steps are exact.
func lossless(p *plan.Plan) bool {
	return p.Request.Format == "" && !slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return s.Index == "" })
}

// repeatFlags returns the flags that applying the plan needs.
func repeatFlags(p *plan.Plan) (flags string) {
	if p.Request.Hessians != "" {
		flags += " --tokens FILE"
	}
	if p.Request.Statistics != "" {
		flags += " --device 0"
	}
	if p.Request.Reference != "" {
		flags += " --reference ORIGINAL"
	}
	return flags
}

// folderFlags returns the flags that produce the same files beside the weights.
func folderFlags(f FolderOptions) (flags string) {
	if len(f.Keep) > 0 {
		flags += " --keep " + quoted(strings.Join(f.Keep, ","))
	}
	if f.BaseModel != "" {
		flags += " --base-model " + quoted(f.BaseModel)
	}
	return flags
}

// quoted quotes one word for a shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,-./_") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// verifyFlags returns the plan's workload and role as flags, if they are not verify's defaults.
func verifyFlags(p *plan.Plan) (flags string) {
	if p.Request.Workload != cost.DefaultWorkload {
		flags += " --workload " + p.Request.Workload.String()
	}
	if p.Request.Role != cost.Stationary {
		flags += " --role " + p.Request.Role.String()
	}
	return flags
}

// requestText formats a request as command-line flags.
func requestText(r plan.Request) string {
	words := []string{"--passes " + strings.Join(r.Passes, ",")}
	if len(r.Passes) == 0 {
		words[0] += `""`
	}
	if r.Format != "" {
		words = append([]string{"--format " + r.Format}, words...)
	}
	if len(r.Ignore) > 0 {
		words = append(words, "--ignore "+strings.Join(r.Ignore, ","))
	}
	if len(r.Only) > 0 {
		words = append(words, "--only "+strings.Join(r.Only, ","))
	}
	if r.MinSNR != nil {
		words = append(words, fmt.Sprintf("--min-snr %g", *r.MinSNR))
	}
	if r.MaxLoss != nil {
		words = append(words, fmt.Sprintf("--max-loss %.6g%%", 100*elementary.Expm1(*r.MaxLoss)))
	}
	return strings.Join(append(words, "--workload "+r.Workload.String(), "--role "+r.Role.String()), " ")
}
