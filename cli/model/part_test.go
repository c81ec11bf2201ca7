package model

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform/apply"
)

func TestParsePart(t *testing.T) {
	slurm := func(id, first, last, count string) map[string]string {
		return map[string]string{"SLURM_ARRAY_TASK_ID": id, "SLURM_ARRAY_TASK_MIN": first, "SLURM_ARRAY_TASK_MAX": last, "SLURM_ARRAY_TASK_COUNT": count}
	}
	kube := map[string]string{"JOB_COMPLETION_INDEX": "2"}
	for _, c := range []struct {
		text string
		env  map[string]string
		want apply.Part
		err  string
	}{
		{"3/16", nil, apply.Part{Number: 3, Of: 16}, ""},
		{"1/1", nil, apply.Part{Number: 1, Of: 1}, ""},
		{"auto", slurm("0", "0", "7", "8"), apply.Part{Number: 1, Of: 8}, ""},
		{"auto", slurm("8", "1", "8", "8"), apply.Part{Number: 8, Of: 8}, ""},
		{"auto/16", slurm("7", "3", "7", "2"), apply.Part{Number: 7, Of: 16}, ""},
		{"auto/3", kube, apply.Part{Number: 3, Of: 3}, ""},
		{"auto", map[string]string{"JOB_COMPLETION_INDEX": "0", "LOWTOGGLE_PARTS": "4"}, apply.Part{Number: 1, Of: 4}, ""},
		{"auto", map[string]string{"SLURM_ARRAY_TASK_ID": "2", "LOWTOGGLE_PARTS": "4"}, apply.Part{Number: 2, Of: 4}, ""},
		{"auto", kube, apply.Part{}, "set LOWTOGGLE_PARTS to the job's completions"},
		{"auto", nil, apply.Part{}, "neither SLURM_ARRAY_TASK_ID (Slurm) nor JOB_COMPLETION_INDEX (Kubernetes) is set"},
		{"auto", slurm("7", "3", "7", "2"), apply.Part{}, "are not numbered consecutively from 3 to 7: give auto/N"},
		{"auto", map[string]string{"SLURM_ARRAY_TASK_ID": "2"}, apply.Part{}, `SLURM_ARRAY_TASK_MIN is "", not a whole number: name the part, as in 3/16`},
		{"auto/2", kube, apply.Part{}, "there is no part 3: parts are numbered from 1 to 2"},
		{"auto", map[string]string{"JOB_COMPLETION_INDEX": "x", "LOWTOGGLE_PARTS": "4"}, apply.Part{}, `JOB_COMPLETION_INDEX is "x"`},
		{"auto", map[string]string{"JOB_COMPLETION_INDEX": "1", "LOWTOGGLE_PARTS": "four"}, apply.Part{}, `LOWTOGGLE_PARTS is "four"`},
		{"", nil, apply.Part{}, "give two whole numbers"},
		{"3", nil, apply.Part{}, "give two whole numbers"},
		{"3/", nil, apply.Part{}, "give two whole numbers"},
		{"/3", nil, apply.Part{}, "give two whole numbers"},
		{"a/3", nil, apply.Part{}, "give two whole numbers"},
		{"1/2/3", nil, apply.Part{}, "give two whole numbers"},
		{"0/3", nil, apply.Part{}, "numbered from 1 to 3"},
		{"4/3", nil, apply.Part{}, "numbered from 1 to 3"},
		{"1/-3", nil, apply.Part{}, "give two whole numbers"},
		{"1/1000000", nil, apply.Part{}, "from 1 to 100000"},
	} {
		got, err := parsePart(c.text, func(name string) string { return c.env[name] })
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s with %v: part %v, error %v; want %v %s", c.text, c.env, got, err, c.want, c.err)
		}
	}
}
