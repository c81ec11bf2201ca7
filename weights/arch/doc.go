// Package arch describes model architectures. It names the axes of a checkpoint's tensors. The names show which weights may be
// permuted, negated or scaled together without changing the model's function.
// A [Family] is one architecture, read from a JSON file. The files in families/ are embedded; [Parse] reads a user's own file.
// [Resolve] finds a model's family by config.json ([Detect]), compares the family with the checkpoint's headers
// ([Family.Resolve]), and returns a [Layout]. The layout has, for every tensor, a [Claim]: its role, its kind of layer, and one
// [Axis] for each dimension. It also has every [Index]: a set of labels, such as the neurons of one FFN, that axes of several
// tensors share. An axis turns a permutation of an index into one of a tensor's rows or columns. No weights are read here.
//
// # An example
//
// In a gated FFN, y = down·(act(gate·x) ⊙ up·x), the neurons are an index. The rows of gate are
// "ffn", the rows of up "+ffn", the columns of down "-ffn": all three follow a permutation of the
// neurons; multiplying a neuron by -1 or 2^k does so to its row of up, and the inverse to its
// column of down, and leaves gate alone because of act.
//
// # A family file
//
// A family file is a JSON object. Fields that are not listed here are errors. Every entry may have a
// "doc", a sentence for readers.
//
//	family         its name
//	like           an embedded family whose lists it takes over; see below
//	model_types    the values of "model_type" in config.json that mean this family
//	architectures  the values of "architectures" that do, where no family has the model_type
//	prefixes       what {prefix} may stand for in tensors' names; default [""]. A checkpoint uses
//	               one throughout: the one under which most names are known. New folders get the
//	               first. An object instead of a string says what other words stand for, too:
//	               {"prefix": "language_model.model.", "root": "language_model."} where names
//	               beside the prefixed ones start otherwise, as "{root}lm_head.weight" does, and
//	               words of the family's own for a part of a name that has several spellings:
//	               {"prefix": "bert.", "gamma": "weight"} for "{prefix}norm.{gamma}".
//	flags, dims, loops, indices, norms, tensors   the lists below
//	absent         a list of {"what": "residual signs", "why": "A sentence."}: symmetries that a
//	               reader might expect and this family lacks
//
// Fields of config.json are looked up in its "text_config", where it has one, and then at its
// top; so a family also serves models in which it is one of several modalities. The first of an
// entry's fields that is there and not null counts; "a.b" is field b inside object a.
//
// Flags are properties of a model that are true or false, read from config.json.
//
//	name, fields   the field must be true or false, unless there is one of
//	is             a list of strings: the flag is set where the field is one of them, or a list
//	               that has one of them; numbers count as they are spelt
//	present        true: the flag is set where one of the fields is there
//	unlike         a list of fields: the flag is set where the first of them that is there
//	               differs from that of "fields"
//	default        where no field is there; default false
//
// A condition is a list of flags, separated by spaces, that must be set or, with "!", unset:
// "tied !headless". Dims and tensors have them as "when". Of several entries with the same name
// the first whose condition holds counts.
//
// Dims are whole numbers from 1 to 2^31.
//
//	name, fields   a float without fraction is a whole number, an object the number of its entries
//	of             an expression as for value, of which the field is a fraction; rounded down
//	value          where no field is there: an expression of numbers and earlier dims with + - * /
//	               and parentheses. Divisions must come out even. Without a value a missing field
//	               is an error.
//	min            the least value allowed, 0 or more; default 1
//	when           the condition; a dim none of whose entries holds has no value, and only
//	               entries that do not apply may use it
//
// Loops are the variables in tensors' names.
//
//	name           the variable: "layer" for {layer}
//	count          an expression over dims; the variable runs from 0 to count-1
//	beyond         true: tensors beyond that are left unclaimed. Otherwise they are an error.
//
// Indices are sets of labels that axes share.
//
//	name           used in axis expressions; "v". Dims, loops and indices have different names.
//	per            loops and earlier indices for each of whose values there is one instance:
//	               ["layer", "kv"]. The instance for KV head 1 of layer 3 is called
//	               "layers.3.kv.1.v": loops get an s, indices do not.
//	length         an expression over dims. Where it is 0 nothing carries the index: such parts
//	               of a concatenation are left out.
//	uses           an expression over dims: on how many axes of linear and embedding tensors that
//	               are not optional one instance stands. An axis counts once, however often the
//	               index stands on it. Fewer or more are an error. Without it a tensor that was
//	               forgotten goes unseen.
//	permute        the condition under which its labels may be permuted; "always"; absent: never
//	sign           the same for -1 on any label
//	scale          the same for 2^k on any label
//
// An index with scale needs an axis that takes it with + and one with -, an index with sign two
// axes that take it with either: otherwise they could not cancel. Both are checked for every
// model that is read.
//
// Norms are named so that they can be folded into the linear layers that they feed.
//
//	name           used by tensors
//	kind           "layernorm", "rmsnorm", or "rmsnorm1p" (multiplies by 1 + weight)
//	weight, bias   names of norm tensors, whose axes are the same; no bias where the norm has none
//
// Tensors are listed in the order in which a new folder stores them; neighbours whose names share
// a loop run through it together.
//
//	name           with {prefix} in front where it applies, and loops' variables standing alone
//	               between dots: "{prefix}layers.{layer}.mlp.up_proj.weight"
//	role           "linear", "embedding", "norm" (weight or bias of one), "bias" (of a linear
//	               layer), or "buffer": no parameter, copied as it is whatever its shape
//	axes           one axis expression per dimension; none for buffers
//	out            linear: the dimension that counts outputs; default 0. 1 for weights stored
//	               [in, out].
//	norm           linear: the norm whose output is this layer's input. A norm can be folded only
//	               where every tensor that reads it says so. An axis of the inputs is then the
//	               norm's, with - where that has +; signs may pass the norm without it.
//	bias           linear: the name of its bias tensor, whose last axis is that of the outputs,
//	               written the same
//	softmax        linear: its outputs go into a softmax with nothing between (no soft cap), and
//	               the tensor is not shared: one vector may be added to every row
//	optional       may be absent; new folders leave it out
//	when           the condition under which such a tensor exists
//	from, to       expressions: the tensor exists only where its name's first variable is at least
//	               from and less than to; default the whole loop. Entries of one name whose
//	               ranges do not overlap all count.
//
// # A family like another
//
// With "like" a family takes over the prefixes and all lists of an embedded one, which may
// itself be like another. An entry of its own takes the place of those of the same name: of all
// of them, so conditional entries are listed anew together. New entries come last, or as they
// say:
//
//	after          the name of an entry of the list behind which this one comes; an entry that
//	               the base has moves there
//	remove         true: the base's entries of this name are taken away
//
// Prefixes, where there are any, replace those of the base. The doc, model_types, architectures
// and absent are never taken over.
//
// # Axis expressions
//
//	ffn            a leaf: an index, a dim, or a number. Dims and numbers are plain lengths, whose
//	               positions stay where they are.
//	+ffn  -ffn     the index's signs and scales apply here: 2^k by +, 2^-k by -, -1 by both.
//	               Without either only its permutation does.
//	kv group v     a product, outer to inner: kv blocks, each of group blocks, each of v positions
//	q | k | v      a concatenation; products bind tighter
//	head (a | b)   parentheses
//	a & -b         riders: both count the same positions and must be equally long. The first
//	               decides the order; an index that can be permuted stands in a later one only if
//	               it stands in the first. "&" binds loosest and not inside parentheses.
//
// An index that is per another index takes that one's label from the product that it stands in:
// in "kv group 2 +pair" the pairs are those of the KV head. One that is per a loop takes it from
// the variable in the tensor's name.
//
// More examples, rows of a query, key and value projection:
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
//   - Everything that touches the residual stream carries its index: position embeddings, biases
//     of layers that write to it, norms, routers.
//   - Signs on the residual stream pass RMSNorm, whose weight is then plain "residual", and not
//     LayerNorm, which subtracts the mean.
//   - A norm's weight scaled by 2^k needs 2^-k on every reader; a final norm before tied
//     embeddings has none to give it to.
//   - Operations on single channels rule out symmetries of those channels: norms on q or k, rotary
//     positions across pairs, position slopes per head, activations.
//   - Tensors that share an index but are not listed would break the model. Resolve therefore
//     blocks the indices around a tensor that it does not know (see [Index]).
//   - Experts stored as tensors of their own keep their order: an index lies within tensors.
//     Stacked ones are an ordinary axis.
//   - A symmetry that holds for some models only has a flag as its condition. "uses" may count
//     by dims with "when" whose value is 0 or 1.
package arch
