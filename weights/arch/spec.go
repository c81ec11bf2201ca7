package arch

// The specs are a family file as it is written; doc.go explains every field.

type spec struct {
	Family        string       `json:"family"`
	Doc           string       `json:"doc"`
	ModelTypes    []string     `json:"model_types"`
	Architectures []string     `json:"architectures"`
	Prefixes      []string     `json:"prefixes"`
	Flags         []flagSpec   `json:"flags"`
	Dims          []dimSpec    `json:"dims"`
	Loops         []loopSpec   `json:"loops"`
	Indices       []indexSpec  `json:"indices"`
	Norms         []normSpec   `json:"norms"`
	Tensors       []tensorSpec `json:"tensors"`
}

type flagSpec struct {
	Name    string   `json:"name"`
	Doc     string   `json:"doc"`
	Fields  []string `json:"fields"`
	Is      []string `json:"is"`
	Default bool     `json:"default"`
}

type dimSpec struct {
	Name   string   `json:"name"`
	Doc    string   `json:"doc"`
	Fields []string `json:"fields"`
	Value  string   `json:"value"`
	Min    *int     `json:"min"`
	When   string   `json:"when"`
}

type loopSpec struct {
	Name  string `json:"name"`
	Doc   string `json:"doc"`
	Count string `json:"count"`
}

type indexSpec struct {
	Name    string   `json:"name"`
	Doc     string   `json:"doc"`
	Per     []string `json:"per"`
	Length  string   `json:"length"`
	Permute string   `json:"permute"`
	Sign    string   `json:"sign"`
	Scale   string   `json:"scale"`
}

type normSpec struct {
	Name   string `json:"name"`
	Doc    string `json:"doc"`
	Kind   string `json:"kind"`
	Weight string `json:"weight"`
	Bias   string `json:"bias"`
}

type tensorSpec struct {
	Name     string   `json:"name"`
	Doc      string   `json:"doc"`
	Role     string   `json:"role"`
	Axes     []string `json:"axes"`
	Out      int      `json:"out"`
	Norm     string   `json:"norm"`
	Bias     string   `json:"bias"`
	Softmax  bool     `json:"softmax"`
	Optional bool     `json:"optional"`
	When     string   `json:"when"`
	From     string   `json:"from"`
	To       string   `json:"to"`
}
