package model

import "github.com/lowtoggle/lowtoggle/transform/plan"

// Documents has a value of each type that a command prints with --json, by command: the source of its schema. Of several
// types a document has one.
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
