// Package arch describes model architectures. It names the axes of a checkpoint's tensors. The names show which weights may be
// permuted, negated or scaled together without changing the model's function.
// A [Family] is one architecture, read from a JSON file. The files in families/ are embedded; [Parse] reads a user's own file.
// [Resolve] finds a model's family by config.json ([Detect]), compares the family with the checkpoint's headers
// ([Family.Resolve]), and returns a [Layout]. The layout has, for every tensor, a [Claim]: its role, its kind of layer, and one
// [Axis] for each dimension. It also has every [Index]: a set of labels, such as the neurons of one FFN, that axes of several
// tensors share. An axis turns a permutation of an index into one of a tensor's rows or columns. The package reads no weights.
//
// # An example
//
// In a gated FFN, y = down·(act(gate·x) ⊙ up·x), the neurons are an index. The rows of gate are "ffn", the rows of up "+ffn", and
// the columns of down "-ffn". A permutation of the neurons applies to all three. A factor of -1 or 2^k for a neuron multiplies
// its row of up, and the inverse multiplies its column of down. gate gets no factor, because act is not linear.
//
// # A family file
//
// A family file is a JSON object. A field that is not listed here is an error. Every entry may have a "doc", a sentence for
// readers.
//
//	family         the family's name
//	like           the name of an embedded family whose lists this family inherits; see below
//	model_types    values of "model_type" in config.json that mean this family
//	architectures  values of "architectures" in config.json that mean this family, if no family
//	               has the model_type
//	prefixes       texts for {prefix} in tensors' names; default [""]. A checkpoint uses one
//	               entry throughout: the one under which most of its names are known. New
//	               folders get the first entry. An entry may also be an object with the texts of
//	               several words: {prefix}; {root}, for names that do not begin with {prefix},
//	               such as "{root}lm_head.weight"; and words of the family for one part of a
//	               name. {"prefix": "bert.", "gamma": "weight"} is for "{prefix}norm.{gamma}".
//	flags, dims, loops, indices, norms, tensors   the lists below
//	absent         a list of {"what": "residual signs", "why": "A sentence."}: symmetries that a
//	               reader may expect and this family lacks
//
// Fields of config.json are looked up first in its "text_config", if there is one, and then at its top level. So a family also
// fits models with several modalities. If an entry lists several fields, the first field that is present and not null counts;
// "a.b" is field b inside object a.
//
// Flags are properties of a model that are true or false, read from config.json.
//
//	name, fields   the field must be true or false, unless the entry has is, present or unlike
//	is             a list of strings: the flag is set if the field is one of them, or is a list
//	               that contains one of them; numbers are compared as they are spelt
//	present        true: the flag is set if one of the fields is present
//	unlike         a list of fields: the flag is set if the first present one of them differs
//	               from the first present one of "fields"
//	default        the flag's value if no field is present; default false
//
// A condition is a list of flags, separated by spaces: "tied !headless". A plain flag must be set, and a flag with "!" unset.
// Dims and tensors have a condition as "when". Of several entries with the same name, the first whose condition holds counts.
//
// Dims are whole numbers from 1 to 2^31.
//
//	name, fields   a float without a fraction is a whole number; an object stands for the number
//	               of its entries
//	of             an expression as in value: the field is a fraction of its result. The dim is
//	               rounded down.
//	value          the default if no field is present: an expression of numbers and earlier
//	               dims with + - * / and parentheses. Divisions must leave no remainder. Without
//	               a value, a missing field is an error.
//	min            the least value allowed, 0 or more; default 1
//	when           the condition. If no entry of a dim holds, the dim has no value, and an entry
//	               that applies must not use it.
//
// Loops are the variables in tensors' names.
//
//	name           the variable: "layer" for {layer}
//	count          an expression over dims; the variable runs from 0 to count-1
//	beyond         true: tensors with higher numbers are unclaimed. Otherwise they are an error.
//
// Indices are sets of labels that axes share.
//
//	name           used in axis expressions: "v". Dims, loops and indices have different names.
//	per            loops and earlier indices; the index has one instance for each of their
//	               values. With ["layer", "kv"], the instance for KV head 1 of layer 3 is called
//	               "layers.3.kv.1.v": loops get an s, indices do not.
//	length         an expression over dims. If it is 0, the model has no such index, and
//	               concatenations leave out the parts with the index.
//	uses           an expression over dims: the number of axes of linear and embedding tensors
//	               that carry one instance, without optional tensors. An axis counts once, even
//	               if it has the index several times. Another number is an error. Without uses,
//	               a forgotten tensor goes unnoticed.
//	permute        the condition under which labels may be permuted; "always"; absent: never
//	sign           the condition under which labels may be multiplied by -1
//	scale          the condition under which labels may be multiplied by 2^k
//
// An index with scale needs an axis with + and one with -. An index with sign needs two axes with + or -. Otherwise the factors
// could not cancel. Resolve checks these rules for every model.
//
// Norms are named so that they can be folded into the linear layers that read them.
//
//	name           used by tensors
//	kind           "layernorm", "rmsnorm", or "rmsnorm1p" (multiplies by 1 + weight)
//	weight, bias   names of norm tensors with equal axes; no bias if the norm has none
//
// Tensors are listed in the order in which a new folder stores them. Neighbours whose names share a loop run through it together.
//
//	name           "{prefix}layers.{layer}.mlp.up_proj.weight": {prefix} stands in front, and a
//	               loop's variable stands alone between dots
//	role           "linear", "embedding", "norm" (weight or bias of a norm), "bias" (of a linear
//	               layer), or "buffer" (no parameter: copied, and may have any shape)
//	axes           one axis expression per dimension; none for buffers
//	out            linear: the dimension that counts outputs; default 0. 1 for weights stored
//	               [in, out].
//	norm           linear: the norm whose output is this layer's input. A norm can be folded only
//	               if every tensor that reads it names it. An input axis must then be the norm's
//	               axis, with - in place of +. Signs may also pass the norm: its axis then has
//	               no + or -.
//	bias           linear: the name of its bias tensor, whose last axis must be spelt like that
//	               of the outputs
//	softmax        linear: true if the outputs go directly into a softmax (no soft cap) and the
//	               tensor is not shared. One vector may then be added to every row.
//	optional       true: the tensor may be absent; new folders leave it out
//	when           the condition under which the tensor exists
//	from, to       expressions: the tensor exists only if the first variable in its name is at
//	               least from and less than to; default the whole loop. Entries with the same
//	               name and without common numbers all count.
//
// # A family like another
//
// With "like", a family inherits the prefixes and all lists of an embedded family, which may itself have "like". An entry
// replaces all inherited entries of its name. So conditional entries of one name must be listed again together. New entries come
// last, unless they have one of these fields:
//
//	after          the name of the entry that this entry follows; an inherited entry moves there
//	remove         true: the inherited entries of this name are removed
//
// The family's own prefixes, if any, replace the inherited ones. doc, model_types, architectures and absent are not inherited.
//
// # Axis expressions
//
//	ffn            an index, a dim, or a number. The positions of dims and numbers do not move.
//	+ffn  -ffn     signs and scales of the index apply here: 2^k with +, 2^-k with -, and -1 with
//	               both. Without + and -, only the permutation applies.
//	kv group v     a product, outer to inner: kv blocks, each of group blocks, each of v positions
//	q | k | v      a concatenation; products bind tighter
//	head (a | b)   parentheses
//	a & -b         riders: two expressions for the same positions, of equal length. The first one
//	               decides the order. An index that can be permuted may stand in a later rider
//	               only if it stands in the first. "&" binds loosest, and not inside parentheses.
//
// An index that is per another index takes that index's label from the product around it: in "kv group 2 +pair", the pairs are
// those of the KV head. An index that is per a loop takes the loop's value from the variable in the tensor's name.
//
// More examples, for the rows of query, key and value projections:
//
//	kv group 2 +pair                     rotary positions, halves apart (Llama's q; its k is "kv 2 -pair")
//	kv group +pair 2                     rotary positions, neighbours together (GPT-J)
//	head (2 +pair | +rest)               rotary positions in a part of each head
//	head +qk | head -qk | head +v        fused: all q, all k, all v (GPT-2)
//	head (+qk | -qk | +v)                fused per head (BLOOM)
//	kv (group qk | qk | v)               fused per KV head (Falcon)
//	ffn | +ffn                           fused gate and up (Phi-3)
//
// # A new family: what to check
//
//   - Every tensor that reads or writes the residual stream carries its index: position embeddings, biases of layers that write
//     to it, norms, routers.
//   - Signs on the residual stream pass RMSNorm, whose weight then has the axis "residual". They do not pass LayerNorm, because
//     LayerNorm subtracts the mean.
//   - If a norm's weight is scaled by 2^k, every reader of the norm needs 2^-k. A final norm before tied embeddings has no such
//     reader.
//   - Operations on single channels rule out symmetries of those channels: norms on q or k, rotary positions across pairs,
//     position slopes per head, activations.
//   - A tensor that shares an index but is not listed would break the model. Resolve therefore blocks the indices around a tensor
//     that the family does not list (see [Index]).
//   - Experts in separate tensors keep their order, because an index lies within tensors. Stacked experts are an ordinary axis.
//   - A symmetry of some models only has a flag as its condition. "uses" may multiply by dims with "when" whose value is 0 or 1.
package arch
