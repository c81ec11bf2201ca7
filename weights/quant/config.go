package quant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Methods whose layouts this package knows, as config.json spells them.
const (
	methodCompressed = "compressed-tensors"
	methodFP8        = "fp8"
	methodFBGEMM     = "fbgemm_fp8"
	methodModelOpt   = "modelopt"
	methodGPTQ       = "gptq"
	methodAWQ        = "awq"
	methodMXFP4      = "mxfp4"
	methodBNB        = "bitsandbytes"
)

// config is a file's description of a checkpoint's quantisation. Missing numbers are 0.
type config struct {
	file   string // its name
	field  string // the object's field in the file; empty for the whole file
	method string
	// inferred: the method follows from other fields, because quant_method is missing.
	inferred bool

	opaque string // why the layout is unknown, even if the method is known; empty if the layout is known
	dense  bool   // the config states that no weight is quantised

	algorithm string // of ModelOpt
	version   string // of GPTQ's and AWQ's layouts
	schemes   []scheme
	ignore    []string // modules that are not quantised
	ignoring  string   // the field that lists them
	patterns  []pattern
}

// pattern is an entry of compressed-tensors' ignore list that begins with "re:".
type pattern struct {
	entry string
	*regexp.Regexp
}

// scheme describes how a part of the weights is quantised. Fields that the config lacks are empty.
type scheme struct {
	field     string // the scheme's field in the config, for messages
	targets   []string
	codes     string // as Format.Codes
	bits      int
	per       string
	group     int    // −1: one group is a whole row
	block     [2]int // zeros: none
	groupIn   string // the field with the group size: a path below field, as blockIn and the next ones are
	blockIn   string
	bitsIn    string
	perIn     string
	zerosIn   string // the field that announces zero points; empty if none does
	codesIn   string // the field that determines codes: a path in the config
	overruled bool   // the config has other values for some modules

	perMissing bool // the config lacks the field perIn, which determines per
}

// at returns the file and name of a field for a message.
func (c *config) at(field string) string {
	path := strings.Trim(c.field+"."+field, ".")
	if path == "" {
		return c.file
	}
	return c.file + ": " + path
}

// says returns the config's method as text for a message.
func (c *config) says() string {
	if c.inferred {
		return fmt.Sprintf("%s describes the method %q", c.at(""), c.method)
	}
	return fmt.Sprintf("%s is %q", c.at("quant_method"), c.method)
}

// readConfig reads a model's quantisation from its config files; it returns nil if they have none.
func readConfig(m *weights.Model) (*config, error) {
	main, err := mainConfig(m.Config)
	if err != nil {
		return nil, weights.FileErrorf(m.Dir, "%w", err)
	}
	all := []*config{main}
	for _, name := range []string{weights.ModelOptConfigName, weights.GPTQConfigName} {
		if !slices.Contains(m.Others, name) {
			continue
		}
		js, err := m.ReadFile(name, bounded.Config)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c, err := sideConfig(name, js)
		if err != nil {
			return nil, weights.FileErrorf(m.Dir, "%w", err)
		}
		all = append(all, c)
	}
	all = slices.DeleteFunc(all, func(c *config) bool { return c == nil })
	for i := 1; i < len(all); i++ {
		if err := all[0].agree(all[i]); err != nil {
			return nil, weights.FileErrorf(m.Dir, "%w", err)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all[0], nil
}

// agree returns an error if two files give different values for a field.
func (c *config) agree(other *config) error {
	differ := func(field string, a, b any) error {
		return fmt.Errorf("%s is %v, but %s is %v: correct the wrong file, or download the model again", c.at(field), a, other.at(field), b)
	}
	switch {
	case c.method != other.method:
		return fmt.Errorf("%s, but %s: correct the wrong file, or download the model again", c.says(), other.says())
	case c.algorithm != "" && other.algorithm != "" && c.algorithm != other.algorithm:
		return differ("quant_algo", c.algorithm, other.algorithm)
	case len(c.schemes) != 1 || len(other.schemes) != 1:
		return nil
	}
	a, b := c.schemes[0], other.schemes[0]
	switch {
	case a.bits != 0 && b.bits != 0 && a.bits != b.bits:
		return differ("bits", a.bits, b.bits)
	case a.group != 0 && b.group != 0 && a.group != b.group:
		return differ("group_size", a.group, b.group)
	}
	return nil
}

// mainConfig reads config.json's quantization_config. Package arch reports text that is not a JSON object.
func mainConfig(js []byte) (*config, error) {
	var top map[string]json.RawMessage
	if json.Unmarshal(js, &top) != nil {
		return nil, nil
	}
	for _, name := range []string{"quantization_config", "compression_config"} {
		for _, inner := range []string{"", "text_config"} {
			object, field := top, name
			if inner != "" {
				object, field = nil, inner+"."+name
				if json.Unmarshal(top[inner], &object) != nil {
					continue
				}
			}
			if raw := object[name]; raw != nil && string(raw) != "null" {
				return parseConfig(weights.ConfigName, field, raw)
			}
		}
	}
	return nil, nil
}

// sideConfig reads hf_quant_config.json or quantize_config.json.
func sideConfig(name string, js []byte) (*config, error) {
	if name == weights.GPTQConfigName {
		return parseConfig(name, "", js)
	}
	values, err := parseObject(js)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: correct the file, or download it again", name, err)
	}
	c := &config{file: name, field: "quantization", method: methodModelOpt, inferred: true}
	r := &reader{config: c, values: values}
	r.modelOpt(r.object("quantization"))
	return c, r.err
}

// parseConfig reads a quantization_config.
func parseConfig(file, field string, js []byte) (*config, error) {
	c := &config{file: file, field: field}
	values, err := parseObject(js)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: correct the file, or download it again", c.at(""), err)
	}
	r := &reader{config: c, values: values}
	c.method = methodOf(r)
	if r.err != nil {
		return nil, r.err
	}
	switch c.method {
	case methodCompressed:
		r.compressed()
	case methodFP8:
		r.fp8()
	case methodFBGEMM:
		c.schemes = []scheme{{codes: "fp8", bits: 8, per: "channel", perIn: "quant_method", codesIn: "quant_method"}}
		r.ignored("modules_to_not_convert")
	case methodModelOpt:
		r.modelOpt(values)
	case methodGPTQ:
		r.gptq()
	case methodAWQ:
		r.awq()
	case methodMXFP4:
		c.schemes = []scheme{{codes: "mxfp4", bits: 4, per: "group", group: 32, perIn: "quant_method", codesIn: "quant_method"}}
		r.ignored("modules_to_not_convert")
	case methodBNB:
		r.ignored("llm_int8_skip_modules")
	default:
		c.opaque = fmt.Sprintf("quant_method %q is not known", c.method)
		if c.inferred {
			c.opaque = "quant_method is missing"
		}
	}
	return c, r.err
}

// methodOf returns this package's name for the quant_method. If the field is missing, other fields decide.
func methodOf(r *reader) string {
	name := r.text("quant_method")
	if name == "" {
		r.config.inferred = true
		for _, sign := range [][2]string{{"config_groups", methodCompressed}, {"quant_algo", methodModelOpt}, {"load_in_4bit", methodBNB},
			{"load_in_8bit", methodBNB}, {"w_bit", methodAWQ}, {"bits", methodGPTQ}} {
			if r.values[sign[0]] != nil {
				return sign[1]
			}
		}
		return "no quant_method"
	}
	switch name {
	case "compressed_tensors":
		return methodCompressed
	case "gptq_marlin", "gptq_v2":
		return methodGPTQ
	case "awq_marlin":
		return methodAWQ
	case "modelopt_fp4", "modelopt_fp8", "modelopt_mixed":
		return methodModelOpt
	}
	return name
}

// compressed reads a config of compressed-tensors.
func (r *reader) compressed() {
	c := r.config
	format := r.text("format")
	r.ignored("ignore")
	for _, entry := range c.ignore {
		// Python's re.match anchors only the beginning. Patterns that Go cannot compile are ignored.
		if text, is := strings.CutPrefix(entry, "re:"); is {
			if re, err := regexp.Compile(`^(?:` + text + `)`); err == nil {
				c.patterns = append(c.patterns, pattern{entry, re})
			}
		}
	}
	groups := r.object("config_groups")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g, ok := groups[name].(map[string]any)
		if !ok {
			r.fail("config_groups."+name, groups[name], "an object")
			continue
		}
		r.group("config_groups."+name, g, format)
	}
	switch format {
	case "", "float-quantized", "naive-quantized", "int-quantized", "pack-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mixed-precision":
	case "dense":
		c.dense = true
	default:
		c.opaque = fmt.Sprintf("format %q is not known", format)
	}
	if sparse, _ := r.object("sparsity_config")["format"].(string); sparse != "" && sparse != "dense" {
		c.opaque = fmt.Sprintf("sparsity_config.format %q is not known", sparse)
	}
	if len(c.schemes) == 0 && c.opaque == "" {
		c.dense = true // compressed in another way, or only calibrated
	}
}

// group reads one of compressed-tensors' config_groups. A group without weights quantises activations only.
func (r *reader) group(field string, values map[string]any, format string) {
	g := &reader{config: r.config, values: values, path: field}
	defer func() { r.keep(g.err) }()
	formatIn := "format"
	if own := g.text("format"); own != "" {
		format, formatIn = own, field+".format"
	}
	if values["weights"] == nil {
		return
	}
	w := &reader{config: r.config, values: g.object("weights"), path: field + ".weights"}
	s := scheme{field: field, targets: g.strings("targets"), bits: w.number("num_bits", 1, 32), per: w.text("strategy"), group: w.number("group_size", -1, 1<<31-1),
		block: w.pair("block_structure"), groupIn: "weights.group_size", blockIn: "weights.block_structure", bitsIn: "weights.num_bits", perIn: "weights.strategy",
		codesIn: field + ".weights"}
	switch typ := w.text("type"); {
	case strings.HasPrefix(format, "nvfp4"):
		s.codes, s.per, s.codesIn = "nvfp4", "group", formatIn
	case strings.HasPrefix(format, "mxfp4"):
		s.codes, s.per, s.codesIn = "mxfp4", "group", formatIn
	case typ == "float" && s.bits == 8:
		s.codes = "fp8"
	case typ == "float" && s.bits == 4 && s.group == 16:
		s.codes = "nvfp4"
	case typ == "float" && s.bits == 4 && s.group == 32:
		s.codes = "mxfp4"
	case (typ == "int" || typ == "") && s.bits != 0:
		s.codes = fmt.Sprint("int", s.bits)
	case s.bits == 0:
		r.config.opaque = field + ".weights.num_bits is missing"
	default:
		r.config.opaque = fmt.Sprintf("%s quantises to %d bits of type %q, which is not known", field, s.bits, typ)
	}
	switch s.per {
	case "tensor", "channel", "block", "group":
	case "tensor_group":
		s.per = "group"
	case "":
		s.per, s.perMissing = "tensor", true
	default:
		r.config.opaque = fmt.Sprintf("%s.weights.strategy %q is not known", field, s.per)
	}
	if s.group == -1 && s.per == "group" {
		s.per, s.perIn = "channel", s.groupIn
	}
	if w.values["symmetric"] == false {
		s.zerosIn = "weights.symmetric"
	}
	r.keep(w.err)
	r.config.schemes = append(r.config.schemes, s)
}

// fp8 reads the config of DeepSeek, Qwen and others.
func (r *reader) fp8() {
	s := scheme{codes: "fp8", bits: 8, per: "tensor", block: r.pair("weight_block_size"), blockIn: "weight_block_size", perIn: "weight_block_size", perMissing: true, codesIn: "quant_method"}
	if s.block != [2]int{} {
		s.per = "block"
	}
	if kind := r.text("fmt"); kind != "" && kind != "e4m3" {
		r.config.opaque = fmt.Sprintf("fmt %q is not known", kind)
	}
	r.config.schemes = []scheme{s}
	r.ignored("modules_to_not_convert", "ignored_layers")
}

// modelOpt reads a config of ModelOpt, from config.json or a separate file.
func (r *reader) modelOpt(values map[string]any) {
	c := r.config
	q := &reader{config: c, values: values}
	defer func() { r.keep(q.err) }()
	c.algorithm = q.text("quant_algo")
	group := q.number("group_size", -1, 1<<31-1)
	switch c.algorithm {
	case "FP8":
		c.schemes = []scheme{{codes: "fp8", bits: 8, per: "tensor", perIn: "quant_algo", codesIn: "quant_algo"}}
	case "FP8_PER_CHANNEL_PER_TOKEN":
		c.schemes = []scheme{{codes: "fp8", bits: 8, per: "channel", perIn: "quant_algo", codesIn: "quant_algo"}}
	case "NVFP4":
		c.schemes = []scheme{{codes: "nvfp4", bits: 4, per: "group", group: max(group, 0), perIn: "quant_algo", codesIn: "quant_algo", groupIn: "group_size"}}
	case "": // only the KV cache
		c.dense = true
	default:
		c.opaque = fmt.Sprintf("quant_algo %q is not known", c.algorithm)
	}
	q.ignored("exclude_modules", "ignore")
}

// gptq reads a config of GPTQ.
func (r *reader) gptq() {
	s := scheme{bits: r.number("bits", 1, 32), per: "group", group: r.number("group_size", -1, 1<<31-1), bitsIn: "bits", groupIn: "group_size", perIn: "quant_method", codesIn: "bits"}
	s.codes = fmt.Sprint("int", s.bits)
	s.overruled = len(r.object("dynamic")) > 0
	if r.config.version = r.text("checkpoint_format"); r.config.version == "" {
		r.config.version = "gptq"
	}
	if r.values["is_marlin_format"] == true {
		r.config.version = "marlin"
	}
	if !slices.Contains([]string{"gptq", "gptq_v2"}, r.config.version) {
		r.config.opaque = fmt.Sprintf("checkpoint_format %q is not known", r.config.version)
	}
	r.config.schemes = []scheme{s}
}

// awq reads a config of AWQ, under the newer or older names of its fields.
func (r *reader) awq() {
	s := scheme{bits: r.number("bits", 1, 32), group: r.number("group_size", -1, 1<<31-1), per: "group", bitsIn: "bits", groupIn: "group_size", perIn: "quant_method", codesIn: "bits"}
	if s.bits == 0 {
		s.bits, s.bitsIn = r.number("w_bit", 1, 32), "w_bit"
	}
	if s.group == 0 {
		s.group, s.groupIn = r.number("q_group_size", -1, 1<<31-1), "q_group_size"
	}
	s.codes = fmt.Sprint("int", s.bits)
	if r.config.version = strings.ToLower(r.text("version")); r.config.version == "" {
		r.config.version = "gemm"
	}
	if r.config.version != "gemm" {
		r.config.opaque = fmt.Sprintf("version %q is not known", r.config.version)
	}
	r.config.schemes = []scheme{s}
	r.ignored("modules_to_not_convert")
}

// excludes reports whether the config lists a module as not quantised, and returns the matching entry. Only entries that every
// runtime interprets alike count: whole names, and the patterns of compressed-tensors.
func (c *config) excludes(module string) (entry string, ok bool) {
	if _, listed := slices.BinarySearch(c.ignore, module); listed {
		return module, true
	}
	for _, p := range c.patterns {
		if p.MatchString(module) {
			return p.entry, true
		}
	}
	return "", false
}

// targetsAll reports whether the config quantises all linear layers that it does not list as unquantised.
func (c *config) targetsAll() bool {
	return len(c.schemes) == 0 || slices.ContainsFunc(c.schemes, func(g scheme) bool { return len(g.targets) == 0 || slices.Contains(g.targets, "Linear") })
}

// mentions reports whether any entry of the list of unquantised modules may match a module. Runtimes interpret parts of
// names, wildcards and regular expressions differently. An entry matches if any of these interpretations matches.
func (c *config) mentions(module string) bool {
	for _, entry := range c.ignore {
		if text, is := strings.CutPrefix(entry, "re:"); is {
			if re, err := regexp.Compile(text); err != nil || re.MatchString(module) {
				return true
			}
		}
		rest, found := module, true
		for piece := range strings.SplitSeq(entry, "*") {
			_, after, ok := strings.Cut(rest, strings.Trim(piece, "."))
			rest, found = after, found && ok
		}
		if found {
			return true
		}
	}
	return false
}
