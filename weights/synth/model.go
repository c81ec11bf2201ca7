package synth

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// model is the plan of a folder: its tensors, shards and configs.
type model struct {
	config []byte
	shards []shard
	kinds  map[string]kind

	format quantise.Format         // its name is empty if no weight is quantised
	values map[string]weights.Info // quantised weights by name, with the types and shapes of their values
	files  []quantise.File         // further configs beside config.json
}

func newModel(config []byte, o Options) (*model, error) {
	family, err := o.Family, error(nil)
	if family == nil {
		family, err = arch.Detect(config)
	}
	if err != nil {
		return nil, err
	}
	config, err = withDType(config, o.DType)
	if err != nil {
		return nil, err
	}
	tensors, err := family.Expect(config)
	if err != nil {
		return nil, err
	}
	layout, err := family.Resolve(config, tensors)
	if err != nil {
		return nil, err
	}
	m := &model{config: config, kinds: map[string]kind{}}
	for i, t := range tensors {
		k := kindOf(layout.Claims[t.Name], t)
		m.kinds[t.Name] = k
		if o.DType.Bits() == 8 && k.isMatrix() {
			tensors[i].DType = o.DType
		}
		if encoders[tensors[i].DType] == nil {
			return nil, fmt.Errorf("tensor %q: values of type %s cannot be generated", t.Name, tensors[i].DType)
		}
	}
	if o.Format.Name != "" {
		if tensors, err = m.quantise(layout, family, tensors, o); err != nil {
			return nil, err
		}
	}
	m.shards, err = split(tensors, o.ShardBytes)
	return m, err
}

// quantise replaces the weights that the format quantises by the tensors of their codes.
func (m *model) quantise(l *arch.Layout, family *arch.Family, tensors []weights.Info, o Options) (all []weights.Info, err error) {
	if o.DType.Bits() == 8 {
		return nil, fmt.Errorf("give either a format or the type %s, not both", o.DType)
	}
	targets, err := quantise.TargetsOf(l, family, tensors, nil)
	if err != nil {
		return nil, err
	}
	if o.Format, err = targets.Fit(o.Format, tensors); err != nil {
		return nil, err
	}
	float, err := arch.ConfigDType(m.config)
	if err != nil {
		return nil, err
	}
	m.format, m.values = o.Format, map[string]weights.Info{}
	for _, t := range tensors {
		if !targets.Weights[t.Name] {
			all = append(all, t)
			continue
		}
		parts, err := o.Format.Tensors(t.Name, t.Shape[0], t.Shape[1], float)
		if err != nil {
			return nil, err
		}
		m.values[t.Name] = t
		all = append(all, parts...)
	}
	if m.config, err = o.Format.Config(m.config, targets.Ignore); err != nil {
		return nil, err
	}
	m.files, err = o.Format.Files(targets.Ignore)
	return all, err
}

// kindOf returns a tensor's kind, which follows from its claim.
func kindOf(c *arch.Claim, t weights.Info) kind {
	switch {
	case c.NormKind == arch.RMSNorm1p:
		return norm1p
	case c.Role == arch.Bias || strings.HasSuffix(t.Name, ".bias"):
		return bias
	case c.Role == arch.Norm:
		return norm
	case c.Role == arch.Embedding:
		return embedding
	case len(t.Shape) > 1 && c.OutAxis == len(t.Shape)-1:
		return conv1D
	case len(t.Shape) > 2 && c.OutAxis == 0:
		return kernel
	}
	return linear
}

// withDType returns config with its element type replaced by d. It returns config unchanged if d is 0, or an 8-bit type, which
// only matrices get.
func withDType(config []byte, d weights.DType) ([]byte, error) {
	if d == 0 {
		return config, nil
	}
	if encoders[d] == nil {
		return nil, fmt.Errorf("values of type %s cannot be generated: choose %s", d, weights.FormatNames("or"))
	}
	if d.Bits() == 8 {
		return config, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(config, &fields); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	delete(fields, "torch_dtype") // the older spelling
	fields["dtype"], _ = json.Marshal(d.Torch())
	out, err := json.MarshalIndent(fields, "", "  ")
	return append(out, '\n'), err
}
