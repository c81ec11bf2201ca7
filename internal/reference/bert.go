package reference

import (
	"fmt"
	"math"
)

// bert computes BERT. A pretraining checkpoint has two heads; the last row of outputs is the sentence head's.
func bert(p *model, in Inputs) [][]float64 {
	h := p.bertEncoder(in, p.under("embeddings.word_embeddings.weight", "bert.", ""), func(t int) int { return t })
	return p.bertHeads(h, bertHead{
		dense: "cls.predictions.transform.dense", norm: "cls.predictions.transform.LayerNorm", words: "cls.predictions",
		act: activation(p.text("hidden_act", "gelu")),
	})
}

// roberta computes RoBERTa: BERT with other heads, and with positions that skip padding.
func roberta(p *model, in Inputs) [][]float64 {
	positions := pastPadding(in.Tokens, int32(p.count("pad_token_id", 1)))
	h := p.bertEncoder(in, p.under("embeddings.word_embeddings.weight", "roberta.", ""), func(t int) int { return positions[t] })
	return p.bertHeads(h, bertHead{
		dense: "lm_head.dense", norm: "lm_head.layer_norm", words: "lm_head", act: activation("gelu"),
	})
}

// pastPadding numbers positions from the padding token's id + 1. Padding tokens have the position padding.
func pastPadding(tokens []int32, padding int32) (positions []int) {
	next := int(padding)
	for _, token := range tokens {
		if token == padding {
			positions = append(positions, int(padding))
			continue
		}
		next++
		positions = append(positions, next)
	}
	return positions
}

// bertEncoder computes the model without heads, with norms after attention and MLP.
func (p *model) bertEncoder(in Inputs, prefix string, position func(t int) int) [][]float64 {
	hidden, heads, act := p.count("hidden_size"), p.count("num_attention_heads"), activation(p.text("hidden_act", "gelu"))
	if kind := p.text("position_embedding_type", "absolute"); kind != "absolute" {
		failf("config.json: position_embedding_type %q is unknown", kind)
	}
	norm := func(name string) func([]float64) []float64 {
		return p.layerNorm(name+".LayerNorm", p.number("layer_norm_eps", 1e-12))
	}
	bias := around
	if p.is("is_decoder", false) {
		bias = backwards
	}
	at := prefix + "embeddings."
	h := make([][]float64, len(in.Tokens))
	for t, token := range in.Tokens {
		h[t] = add(p.row(at+"word_embeddings.weight", int(token), hidden), p.row(at+"token_type_embeddings.weight", 0, hidden))
		h[t] = add(h[t], p.row(at+"position_embeddings.weight", position(t), hidden))
	}
	h = each(h, norm(prefix+"embeddings"))
	for layer := range p.count("num_hidden_layers") {
		at := fmt.Sprintf("%sencoder.layer.%d.", prefix, layer)
		q, k, v := each(h, p.layer(at+"attention.self.query")), each(h, p.layer(at+"attention.self.key")), each(h, p.layer(at+"attention.self.value"))
		y := each(multiHead(q, k, v, heads, bias), p.layer(at+"attention.output.dense"))
		h = each(plus(h, y), norm(at+"attention.output"))
		y = each(h, p.mlp(at+"intermediate.dense", at+"output.dense", act))
		h = each(plus(h, y), norm(at+"output"))
	}
	return h
}

// bertHead names the parts of the word head: a layer, its activation and norm, and the decoder.
type bertHead struct {
	dense, norm, words string
	act                func(float64) float64
}

// bertHeads returns the outputs of config.json's architecture: one row for every position, or one for the sentence,
// or both with the sentence last. The first position represents the sentence.
func (p *model) bertHeads(h [][]float64, words bertHead) (rows [][]float64) {
	prefix := p.under("embeddings.word_embeddings.weight", "bert.", "roberta.", "")
	pooled := func(dense, head string) []float64 {
		return p.linear(head, apply(math.Tanh, p.linear(dense, h[0])))
	}
	switch {
	case p.ends("Model") && !p.ends("LMHeadModel"):
		return h
	case p.ends("ForTokenClassification"):
		return each(h, p.layer("classifier"))
	case p.ends("ForQuestionAnswering"):
		return each(h, p.layer("qa_outputs"))
	case p.ends("ForNextSentencePrediction"):
		return [][]float64{pooled(prefix+"pooler.dense", "cls.seq_relationship")}
	case p.ends("ForSequenceClassification") && p.has("classifier.dense.weight"): // RoBERTa's
		return [][]float64{pooled("classifier.dense", "classifier.out_proj")}
	case p.ends("ForSequenceClassification", "ForMultipleChoice"):
		return [][]float64{pooled(prefix+"pooler.dense", "classifier")}
	}
	decoder, bias := words.words+".decoder.weight", words.words+".bias"
	if p.is("tie_word_embeddings", true) {
		decoder = prefix + "embeddings.word_embeddings.weight"
	} else if p.has(words.words + ".decoder.bias") {
		bias = words.words + ".decoder.bias"
	}
	norm := p.layerNorm(words.norm, p.number("layer_norm_eps", 1e-12))
	rows = each(h, func(x []float64) []float64 {
		return p.affine(decoder, bias, norm(apply(words.act, p.linear(words.dense, x))), false)
	})
	if p.ends("ForPreTraining") {
		rows = append(rows, pooled(prefix+"pooler.dense", "cls.seq_relationship"))
	}
	return rows
}
