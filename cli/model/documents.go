package model

import "github.com/lowtoggle/lowtoggle/transform/plan"

// Documents lists, by command, a value of each type that --json may print. A document has one of its command's types.
// The schemas are generated from these types.
var Documents = map[string][]any{
	"convert":  {convertJSON{}, partJSON{}},
	"demo":     {demoJSON{}},
	"eval":     {evalDocument{}},
	"families": {familiesJSON{}, familyJSON{}},
	"inspect":  {inspectJSON{}},
	"passes":   {passesJSON{}},
	"plan":     {plan.Plan{}, planPartJSON{}},
	"synth":    {synthJSON{}},
	"verify":   {verifyJSON{}},
}
