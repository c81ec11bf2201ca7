package reference

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrUnknown is wrapped by Run's error for an unknown model_type.
var ErrUnknown = errors.New("unknown model_type")

// Inputs are a model's inputs.
type Inputs struct {
	// Tokens are the tokens of one sequence.
	Tokens []int32
	// Values are an image [channels, height, width] for a vision model, or the features [bins, frames] of a recording
	// for an audio model.
	Values []float64
}

// architectures maps every model_type to its function.
var architectures = map[string]func(*model, Inputs) [][]float64{
	"llama":       llama,
	"mistral":     mistral,
	"qwen2":       qwen2,
	"qwen3":       qwen3,
	"gemma":       gemma,
	"gemma2":      gemma2,
	"gemma3":      gemma3,
	"gemma3_text": gemma3,
	"phi3":        phi3,
	"olmo2":       olmo2,
	"granite":     granite,
	"gpt2":        gpt2,
	"opt":         opt,
	"bloom":       bloom,
	"bert":        bert,
	"roberta":     roberta,
	"xlm-roberta": roberta,
	"camembert":   roberta,
	"vit":         vit,
	"whisper":     whisper,
	"gpt_neox":    gptNeoX,
	"starcoder2":  starcoder2,
	"falcon":      falcon,
	"mixtral":     mixtral,
	"qwen3_moe":   qwen3MoE,
	"deepseek_v2": deepseekV2,
	"deepseek_v3": deepseekV3,
}

// Types lists the known model_types, sorted.
func Types() []string { return slices.Sorted(maps.Keys(architectures)) }

// Run computes a model's outputs, one row for every position: logits, or hidden states if the checkpoint has no head.
// It returns an error for missing fields of config.json, missing tensors and tensors of a wrong size.
func Run(m *weights.Model, in Inputs) (rows [][]float64, err error) {
	p, err := newModel(m)
	if err != nil {
		return nil, err
	}
	run := architectures[p.text("model_type", "")]
	if run == nil {
		return nil, fmt.Errorf("%w %q: the reference implementation has %s", ErrUnknown, p.text("model_type", ""), strings.Join(Types(), ", "))
	}
	defer catch(&err)
	return run(p, in), nil
}

// Values returns the number of Inputs.Values that a model needs; 0 for a text model.
func Values(m *weights.Model) (n int, err error) {
	p, err := newModel(m)
	if err != nil {
		return 0, err
	}
	defer catch(&err)
	switch p.text("model_type", "") {
	case "vit":
		return p.pixels(), nil
	case "whisper":
		return p.features(), nil
	}
	return 0, nil
}

// catch recovers from a problem and returns it as an error.
func catch(err *error) {
	if r := recover(); r != nil {
		failure, ok := r.(problem)
		if !ok {
			panic(r)
		}
		*err = failure
	}
}
