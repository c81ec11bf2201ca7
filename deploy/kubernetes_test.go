//go:build linux

package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
)

// job holds the fields of a Job that this test reads. tools/kubernetes checks the whole files.
type job struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string // of values.yaml
	Spec     struct {
		Completions      int
		PodFailurePolicy struct{ Rules []rule } `yaml:"podFailurePolicy"`
		Template         struct{ Spec podSpec }
	}
}

type rule struct {
	Action      string
	OnExitCodes *struct {
		Operator string
		Values   []int
	} `yaml:"onExitCodes"`
}

type podSpec struct {
	Containers []struct {
		Name, Image string
		Args        []string
	}
}

func manifest(t *testing.T, name string) (j job) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(packageDir, "kubernetes", name+".yaml"))
	try(t, err)
	try(t, yaml.Unmarshal(data, &j))
	return j
}

// fails returns the action for a pod that ended with a status; empty if the pod is tried again.
func (j job) fails(status int) string {
	for _, r := range j.Spec.PodFailurePolicy.Rules {
		if c := r.OnExitCodes; c != nil && slices.Contains(c.Values, status) == (c.Operator == "In") {
			return r.Action
		}
	}
	return ""
}

// image is a root folder with the program and nothing else, as the Containerfile makes it, and the volume of the Jobs.
type image struct{ root string }

// run runs the pod of a Job, with the index of an Indexed Job or -1, and returns its exit status and what it printed.
func (m image) run(t *testing.T, j job, index int) (int, string) {
	t.Helper()
	values, env := manifest(t, "values").Data, []string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, name+"="+values[name])
	}
	if index >= 0 {
		env = append(env, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
	}
	var args []string
	for _, arg := range j.Spec.Template.Spec.Containers[0].Args {
		args = append(args, regexp.MustCompile(`\$\(\w+\)`).ReplaceAllStringFunc(arg, func(v string) string { return values[v[2:len(v)-1]] }))
	}
	return m.exec(t, env, args...)
}

// exec runs the program in the image.
func (m image) exec(t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command("/lowtoggle", args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", env, &syscall.SysProcAttr{Chroot: m.root}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skip("chroot is not possible here: ", err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// holdPart locks a part as a process that writes it does.
func holdPart(t *testing.T, parts string, n int) (release func()) {
	t.Helper()
	folder := filepath.Join(parts, fmt.Sprintf("part-%d", n))
	try(t, os.MkdirAll(folder, 0o777))
	f, err := os.Create(filepath.Join(folder, "lock"))
	try(t, err)
	try(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	return func() { f.Close() }
}

// TestKubernetes runs the pods of deploy/kubernetes unchanged, with their variables and volume, in an otherwise empty root
// folder. A part that another process is writing is tried again. A part that fails for another reason is not.
func TestKubernetes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	plan, parts, finish := manifest(t, "plan"), manifest(t, "parts"), manifest(t, "finish")
	dir := t.TempDir()
	m := image{filepath.Dir(build(t, dir))}
	models := filepath.Join(m.root, "models")
	try(t, os.Mkdir(models, 0o777))
	run := func(want int, j job, index int) string {
		t.Helper()
		status, out := m.run(t, j, index)
		if status != want {
			t.Fatalf("%s %d: status %d, want %d\n%s", j.Metadata.Name, index, status, want, out)
		}
		return out
	}
	for _, args := range []string{"synth llama-tiny /models/model --shard-size 20kB", "convert /models/model /models/whole"} {
		if status, out := m.exec(t, nil, strings.Fields(args)...); status != 0 {
			t.Fatalf("%s: status %d\n%s", args, status, out)
		}
	}
	n := parts.Spec.Completions
	if args := parts.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--part=auto/"+strconv.Itoa(n)) {
		t.Errorf("%d completions, and the args are %q", n, args)
	}
	run(0, plan, -1)
	for index := n - 1; index > 0; index-- {
		run(0, parts, index)
	}
	out := filepath.Join(models, "model-lowtoggle")
	release := holdPart(t, out+".partial", 1)
	run(75, parts, 0)
	if action := parts.fails(75); action != "" {
		t.Errorf("status 75: %s", action)
	}
	release()
	if text := run(1, finish, -1); !strings.Contains(text, "1 of 16 parts is missing or damaged: 1\n") {
		t.Errorf("finish without part 1: %s", text)
	}
	for _, status := range []int{1, 2, 137} {
		if parts.fails(status) != "FailIndex" || plan.fails(status) != "FailJob" || finish.fails(status) != "FailJob" {
			t.Errorf("status %d: %q, %q, %q", status, parts.fails(status), plan.fails(status), finish.fails(status))
		}
	}
	run(0, parts, 0)
	run(0, finish, -1)
	if have, want := digests(t, out), digests(t, filepath.Join(models, "whole")); !maps.Equal(have, want) {
		t.Errorf("the output differs from that of a single run:\n%v\n%v", have, want)
	}
	run(0, parts, 0)
	run(0, finish, -1)
}

// TestKubernetesOrder: convert.sh starts a Job when the previous Job is complete. After a Job that fails it starts no other.
func TestKubernetesOrder(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args  []string
		fails string
		want  string
	}{
		{nil, "", "plan parts finish"},
		{[]string{"parts", "finish"}, "", "parts finish"},
		{nil, "lowtoggle-parts", "plan parts"},
	} {
		log := filepath.Join(dir, "log")
		write(t, filepath.Join(dir, "kubectl"), `#!/bin/sh
echo "$*" >>`+log+`
case "$*" in
"get job `+c.fails+` "*type*) echo FailureTarget Failed ;;
"get job "*type*) echo SuccessCriteriaMet Complete ;;
esac
`)
		try(t, os.Chmod(filepath.Join(dir, "kubectl"), 0o755))
		try(t, os.WriteFile(log, nil, 0o644))
		cmd := exec.Command("./convert.sh", c.args...)
		cmd.Dir, cmd.Env = filepath.Join(packageDir, "kubernetes"), []string{"PATH=" + dir + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if (err == nil) != (c.fails == "") || c.fails != "" && !bytes.Contains(out, []byte("kubectl logs -l job-name="+c.fails)) {
			t.Errorf("%q: %v\n%s", c.args, err, out)
		}
		text, err := os.ReadFile(log)
		try(t, err)
		var steps []string
		for _, line := range regexp.MustCompile(`(?m)^apply -f (plan|parts|finish)\.yaml$`).FindAllSubmatch(text, -1) {
			steps = append(steps, string(line[1]))
		}
		if have := strings.Join(steps, " "); have != c.want {
			t.Errorf("%q: the Jobs %s, want %s", c.args, have, c.want)
		}
	}
}

// TestKubernetesLost: convert.sh ends if the cluster does not answer.
func TestKubernetesLost(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kubectl"), `#!/bin/sh
case "$*" in
"get job "*) echo "no connection" >&2; exit 7 ;;
esac
`)
	try(t, os.Chmod(filepath.Join(dir, "kubectl"), 0o755))
	write(t, filepath.Join(dir, "sleep"), `#!/bin/sh
echo waits for ever
kill $PPID
`)
	try(t, os.Chmod(filepath.Join(dir, "sleep"), 0o755))
	cmd := exec.Command("./convert.sh")
	cmd.Dir, cmd.Env = filepath.Join(packageDir, "kubernetes"), []string{"PATH=" + dir + ":/usr/bin:/bin"}
	out, _ := cmd.CombinedOutput()
	if status := cmd.ProcessState.ExitCode(); status != 7 || !bytes.Contains(out, []byte("no connection")) {
		t.Errorf("status %d\n%s", status, out)
	}
}

// TestImage: the pods run the image that the Containerfile makes, and this image runs the program.
func TestImage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(packageDir, "..", "Containerfile"))
	try(t, err)
	if lines := bytes.Count(text, []byte("\n")); lines > 10 {
		t.Errorf("the Containerfile has %d lines", lines)
	}
	if !bytes.Contains(text, []byte("go build -trimpath -tags nogpu -o /lowtoggle .")) || !bytes.Contains(text, []byte(`ENTRYPOINT ["/lowtoggle"]`)) {
		t.Errorf("the Containerfile does not build and start /lowtoggle:\n%s", text)
	}
	for _, name := range []string{"plan", "parts", "finish"} {
		if c := manifest(t, name).Spec.Template.Spec.Containers; len(c) != 1 || c[0].Name != "lowtoggle" || c[0].Image != "lowtoggle" {
			t.Errorf("%s: containers %+v", name, c)
		}
	}
}
