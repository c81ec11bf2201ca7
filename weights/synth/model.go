package synth

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// model is everything that is decided before the first byte is written.
type model struct {
	config []byte
	shards []shard
	kinds  map[string]kind
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
	m.shards, err = split(tensors, o.ShardBytes)
	return m, err
}

// kindOf derives a tensor's kind from its claim.
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

// withDType returns config with its element type replaced by d. It stays as it is where d is none
// or an 8-bit type, which only matrices get.
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
