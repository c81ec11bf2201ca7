package forward_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// plain computes logits in float64, one token after the other, as the models' papers say. It shares
// nothing with the package but the reading of files.
type plain struct {
	t      testing.TB
	model  *weights.Model
	fields map[string]any
	prefix string
}

func newPlain(t testing.TB, m *weights.Model, prefix string) *plain {
	p := &plain{t: t, model: m, prefix: prefix}
	if err := json.Unmarshal(m.Config, &p.fields); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *plain) int(name string) int { return int(p.fields[name].(float64)) }

func (p *plain) is(name string) bool { v, _ := p.fields[name].(bool); return v }

// values are a tensor's, nil where the checkpoint has none.
func (p *plain) values(name string) []float64 {
	tensor, ok := p.model.Tensor(name)
	if !ok {
		return nil
	}
	f, _ := tensor.DType.Format()
	values := make([]float64, tensor.Len())
	for i := range values {
		values[i] = float64(f.Value(f.Elem(tensor.Data, i)))
	}
	return values
}

func (p *plain) row(name string, i, width int) []float64 {
	return p.values(name)[i*width : (i+1)*width]
}

// linear is w·x + b for w[out, in], and w[in, out] where conv.
func (p *plain) linear(name string, x []float64, conv bool) []float64 {
	w, b := p.values(name+".weight"), p.values(name+".bias")
	if w == nil {
		p.t.Fatalf("the checkpoint has no %s", name)
	}
	y := make([]float64, len(w)/len(x))
	for o := range y {
		for i := range x {
			if conv {
				y[o] += w[i*len(y)+o] * x[i]
			} else {
				y[o] += w[o*len(x)+i] * x[i]
			}
		}
		if b != nil {
			y[o] += b[o]
		}
	}
	return y
}

func (p *plain) rmsNorm(name string, x []float64) []float64 {
	w, eps, s := p.values(name+".weight"), p.fields["rms_norm_eps"].(float64), 0.0
	for _, v := range x {
		s += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = w[i] * v / math.Sqrt(s/float64(len(x))+eps)
	}
	return y
}

func (p *plain) layerNorm(name string, x []float64) []float64 {
	w, b, eps := p.values(name+".weight"), p.values(name+".bias"), p.fields["layer_norm_epsilon"].(float64)
	mean, s := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		s += (v - mean) * (v - mean)
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = w[i]*(v-mean)/math.Sqrt(s/float64(len(x))+eps) + b[i]
	}
	return y
}

// attendTo mixes values by the softmax of q·k/√size.
func attendTo(q []float64, keys, values [][]float64) []float64 {
	weight, total := make([]float64, len(keys)), 0.0
	for u, k := range keys {
		s := 0.0
		for i := range q {
			s += q[i] * k[i]
		}
		weight[u] = math.Exp(s / math.Sqrt(float64(len(q))))
		total += weight[u]
	}
	z := make([]float64, len(values[0]))
	for u, v := range values {
		for i := range v {
			z[i] += weight[u] / total * v[i]
		}
	}
	return z
}

// frequency is the rotary frequency of pair i of heads of a size.
func (p *plain) frequency(i, size int) float64 {
	theta, _ := p.fields["rope_theta"].(float64)
	scaling, _ := p.fields["rope_scaling"].(map[string]any)
	if r, ok := p.fields["rope_parameters"].(map[string]any); ok {
		theta, scaling = r["rope_theta"].(float64), r
	}
	f := math.Pow(theta, -2*float64(i)/float64(size))
	kind, _ := scaling["rope_type"].(string)
	if old, ok := scaling["type"].(string); ok {
		kind = old
	}
	switch kind {
	case "linear":
		return f / scaling["factor"].(float64)
	case "llama3":
		factor, length := scaling["factor"].(float64), scaling["original_max_position_embeddings"].(float64)
		wave := 2 * math.Pi / f
		longest, shortest := length/scaling["low_freq_factor"].(float64), length/scaling["high_freq_factor"].(float64)
		if wave > longest {
			return f / factor
		}
		if wave < shortest {
			return f
		}
		smooth := (length/wave - length/longest) / (length/shortest - length/longest)
		return (1-smooth)*f/factor + smooth*f
	}
	return f
}

// rotate multiplies the complex numbers (x[i], x[i+size/2]) by e^(i·position·frequency).
func (p *plain) rotate(x []float64, position int) []float64 {
	half := len(x) / 2
	y := make([]float64, len(x))
	for i := range half {
		sin, cos := math.Sincos(float64(position) * p.frequency(i, len(x)))
		y[i] = x[i]*cos - x[i+half]*sin
		y[i+half] = x[i]*sin + x[i+half]*cos
	}
	return y
}

func add(a, b []float64) []float64 {
	c := make([]float64, len(a))
	for i := range a {
		c[i] = a[i] + b[i]
	}
	return c
}

// llama is the logits behind every token.
func (p *plain) llama(tokens []int32) [][]float64 {
	hidden, heads, kv, size := p.int("hidden_size"), p.int("num_attention_heads"), p.int("num_key_value_heads"), p.int("head_dim")
	h := make([][]float64, len(tokens))
	for t, token := range tokens {
		h[t] = p.row(p.prefix+"embed_tokens.weight", int(token), hidden)
	}
	for layer := range p.int("num_hidden_layers") {
		at := fmt.Sprintf("%slayers.%d.", p.prefix, layer)
		keys, values := make([][][]float64, kv), make([][][]float64, kv) // by head and position
		for t := range h {
			x := p.rmsNorm(at+"input_layernorm", h[t])
			q, k, v := p.linear(at+"self_attn.q_proj", x, false), p.linear(at+"self_attn.k_proj", x, false), p.linear(at+"self_attn.v_proj", x, false)
			for n := range kv {
				keys[n] = append(keys[n], p.rotate(k[n*size:(n+1)*size], t))
				values[n] = append(values[n], v[n*size:(n+1)*size])
			}
			var z []float64
			for n := range heads {
				of := n * kv / heads
				z = append(z, attendTo(p.rotate(q[n*size:(n+1)*size], t), keys[of], values[of])...)
			}
			h[t] = add(h[t], p.linear(at+"self_attn.o_proj", z, false))
			x = p.rmsNorm(at+"post_attention_layernorm", h[t])
			z = p.linear(at+"mlp.gate_proj", x, false)
			for i, up := range p.linear(at+"mlp.up_proj", x, false) {
				z[i] *= up / (1 + math.Exp(-z[i]))
			}
			h[t] = add(h[t], p.linear(at+"mlp.down_proj", z, false))
		}
	}
	head := "lm_head"
	if p.is("tie_word_embeddings") {
		head = p.prefix + "embed_tokens"
	}
	for t := range h {
		h[t] = p.linear(head, p.rmsNorm(p.prefix+"norm", h[t]), false)
	}
	return h
}

// gpt2 is the logits behind every token.
func (p *plain) gpt2(tokens []int32) [][]float64 {
	hidden, heads := p.int("n_embd"), p.int("n_head")
	size := hidden / heads
	h := make([][]float64, len(tokens))
	for t, token := range tokens {
		h[t] = add(p.row(p.prefix+"wte.weight", int(token), hidden), p.row(p.prefix+"wpe.weight", t, hidden))
	}
	for layer := range p.int("n_layer") {
		at := fmt.Sprintf("%sh.%d.", p.prefix, layer)
		keys, values := make([][][]float64, heads), make([][][]float64, heads)
		for t := range h {
			qkv := p.linear(at+"attn.c_attn", p.layerNorm(at+"ln_1", h[t]), true)
			var z []float64
			for n := range heads {
				part := func(i int) []float64 { return qkv[i*hidden+n*size : i*hidden+(n+1)*size] }
				keys[n], values[n] = append(keys[n], part(1)), append(values[n], part(2))
				z = append(z, attendTo(part(0), keys[n], values[n])...)
			}
			h[t] = add(h[t], p.linear(at+"attn.c_proj", z, true))
			z = p.linear(at+"mlp.c_fc", p.layerNorm(at+"ln_2", h[t]), true)
			for i, x := range z {
				z[i] = x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
			}
			h[t] = add(h[t], p.linear(at+"mlp.c_proj", z, true))
		}
	}
	head := "lm_head"
	if p.fields["tie_word_embeddings"] == nil || p.is("tie_word_embeddings") {
		head = p.prefix + "wte"
	}
	for t := range h {
		h[t] = p.linear(head, p.layerNorm(p.prefix+"ln_f", h[t]), false)
	}
	return h
}

// logSoftmax is the logarithm of the probabilities.
func logSoftmax(logits []float64) []float64 {
	total := 0.0
	for _, v := range logits {
		total += math.Exp(v)
	}
	out := make([]float64, len(logits))
	for i, v := range logits {
		out[i] = v - math.Log(total)
	}
	return out
}
