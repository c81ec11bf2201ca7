package reference

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrUnknown is wrapped by Run's error for a model_type that is not computed.
var ErrUnknown = errors.New("model_type is not computed here")

// Inputs is what a model is run on.
type Inputs struct {
	// Tokens are one sequence.
	Tokens []int32
	// Values are what a model that sees or hears is given besides: an image [channels, height, width],
	// or a recording's features [bins, frames].
	Values []float64
}

// architectures has a function for every model_type.
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

// Types lists the model_types that are computed, sorted.
func Types() []string { return slices.Sorted(maps.Keys(architectures)) }

// Run computes a model's outputs: a row for every position, of logits where the checkpoint has a head
// and of hidden states where it has none. It fails where config.json lacks a field, the checkpoint a
// tensor, or a tensor has another size.
func Run(m *weights.Model, in Inputs) (rows [][]float64, err error) {
	p, err := newModel(m)
	if err != nil {
		return nil, err
	}
	run := architectures[p.text("model_type", "")]
	if run == nil {
		return nil, fmt.Errorf("%w: %q; there are %s", ErrUnknown, p.text("model_type", ""), strings.Join(Types(), ", "))
	}
	defer catch(&err)
	return run(p, in), nil
}

// Values is how many Inputs.Values a model takes: 0 where it reads nothing but text.
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

// catch turns a problem that a function panics with into its error.
func catch(err *error) {
	if r := recover(); r != nil {
		failure, ok := r.(problem)
		if !ok {
			panic(r)
		}
		*err = failure
	}
}
