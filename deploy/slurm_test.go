//go:build linux

package deploy

import (
	"bytes"
	"crypto/rand"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var withSlurm = flag.Bool("slurm", false, "run deploy/slurm on a Slurm of Debian's packages; needs root, installs what is missing")

// TestSlurm submits deploy/slurm to a controller and a node on this machine. Of eight parts in an array job, one is killed,
// one interrupted, one requeued, and one refused because another process writes it. The killed part fails, so the job finish
// does not run. After a second submission, the output has the bytes of a single run.
func TestSlurm(t *testing.T) {
	if !*withSlurm {
		t.Skip("needs -slurm")
	}
	dir := t.TempDir()
	program := build(t, dir)
	t.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	startSlurm(t, dir)

	t.Chdir(dir)
	defer showLogs(t)
	write(t, "config.json", model)
	command(t, "lowtoggle", "synth", "config.json", "model", "--shard-size", "20MB") // 12 shards
	command(t, "lowtoggle", "convert", "model", "whole", "--passes", "trellis=0.1")
	t.Setenv("OPTIONS", "--passes trellis=0.1")
	submit := submitScript(t, filepath.Join(dir, "model"), filepath.Join(dir, "out"), 8)

	parts := filepath.Join(dir, "out.partial")
	killed, interrupted, requeued := stopAtFirstBytes(parts, 2), stopAtFirstBytes(parts, 4), stopAtFirstBytes(parts, 6)
	jobs := strings.Fields(regexp.MustCompile(`(?m)^job (\d+): .*$`).ReplaceAllString(command(t, submit), "$1 "))
	array := jobs[1]

	pid := await(t, killed)
	release := holdPart(t, parts, 7)
	try(t, syscall.Kill(pid, syscall.SIGKILL))
	pid = await(t, interrupted)
	interrupt(t, array+"_4", pid)
	await(t, requeued)
	command(t, "scontrol", "requeue", array+"_6")
	until(t, "part 7 is refused", func() bool { return restarts(t, array+"_7") > 0 })
	release()

	until(t, "the first jobs end", func() bool { return command(t, "squeue", "--noheader") == "" })
	for n, want := range []struct {
		state    string
		restarts int
	}{1: {"COMPLETED", 0}, {"FAILED", 0}, {"COMPLETED", 0}, {"COMPLETED", 1}, {"COMPLETED", 0}, {"COMPLETED", 1}, {"COMPLETED", -1}, {"COMPLETED", 0}} {
		if n == 0 {
			continue
		}
		task := fmt.Sprintf("%s_%d", array, n)
		if got := restarts(t, task); field(t, task, "JobState") != want.state || want.restarts >= 0 && got != want.restarts {
			t.Errorf("part %d: %s, %d restarts; want %s, %d", n, field(t, task, "JobState"), got, want.state, want.restarts)
		}
	}
	if status := field(t, array+"_2", "ExitCode"); status != "137:0" {
		t.Errorf("exit code of the killed part: %s", status)
	}
	if state := field(t, jobs[2], "JobState"); state != "CANCELLED" {
		t.Errorf("finish after a part has failed: %s", state)
	}
	if _, err := os.Lstat("out"); err == nil {
		t.Fatal("the output is there, and a part has failed")
	}

	command(t, submit)
	until(t, "the second jobs end", func() bool { return command(t, "squeue", "--noheader") == "" })
	if have, want := digests(t, "out"), digests(t, "whole"); !maps.Equal(have, want) {
		t.Errorf("the output differs from that of a single run:\n%v\n%v", have, want)
	}
	if _, err := os.Lstat(parts); err == nil {
		t.Error("the folder of the parts is left")
	}
}

// showLogs shows the jobs' logs of a test that has failed.
func showLogs(t *testing.T) {
	if t.Failed() {
		logs, _ := filepath.Glob("out.logs/*")
		for _, log := range logs {
			text, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), text)
		}
	}
}

const model = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":1024,"intermediate_size":2816,
"num_hidden_layers":8,"num_attention_heads":8,"num_key_value_heads":4,"vocab_size":8192,"rms_norm_eps":1e-5,
"tie_word_embeddings":false,"torch_dtype":"bfloat16","max_position_embeddings":512,"rope_theta":10000.0,"hidden_act":"silu"}`

// submitScript copies the scripts and sets their three values.
func submitScript(t *testing.T, model, out string, parts int) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(packageDir, "slurm"))
	try(t, err)
	try(t, os.CopyFS("slurm", os.DirFS(source)))
	text, err := os.ReadFile("slurm/submit.sh")
	try(t, err)
	for name, value := range map[string]string{"MODEL": model, "OUT": out, "PARTS": strconv.Itoa(parts)} {
		line := regexp.MustCompile(`(?m)^` + name + `=.*$`)
		if len(line.FindAll(text, -1)) != 1 {
			t.Fatalf("submit.sh does not set %s once", name)
		}
		text = line.ReplaceAll(text, []byte(name+"="+value))
	}
	write(t, "slurm/submit.sh", string(text))
	return "./slurm/submit.sh"
}

// stopAtFirstBytes stops the process that writes a part (SIGSTOP) as soon as it has written something, and sends its number.
func stopAtFirstBytes(parts string, n int) <-chan int {
	folder, stopped := filepath.Join(parts, fmt.Sprintf("part-%d", n)), make(chan int, 1)
	go func() {
		for {
			time.Sleep(100 * time.Microsecond)
			files, _ := filepath.Glob(filepath.Join(folder, "call-*", "*"))
			if len(files) == 0 {
				continue
			}
			text, _ := os.ReadFile(filepath.Join(folder, "lock"))
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil || syscall.Kill(pid, syscall.SIGSTOP) != nil {
				pid = 0
			} else if calls, _ := filepath.Glob(filepath.Join(folder, "call-*")); len(calls) == 0 {
				syscall.Kill(pid, syscall.SIGCONT)
				pid = 0
			}
			stopped <- pid // 0: the part had ended
			return
		}
	}()
	return stopped
}

// interrupt sends SIGTERM to a task and continues its stopped process. In Slurm 22.05, scancel delivers the signal at once,
// but reports failure after some time if other tasks of the array are pending.
func interrupt(t *testing.T, task string, pid int) {
	t.Helper()
	scancel := exec.Command("scancel", "--signal=TERM", task)
	try(t, scancel.Start())
	t.Cleanup(func() { scancel.Wait() })
	until(t, "the signal arrives", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		try(t, err)
		_, pending, _ := strings.Cut(string(status), "ShdPnd:")
		mask, err := strconv.ParseUint(strings.Fields(pending)[0], 16, 64)
		try(t, err)
		return mask&(1<<(syscall.SIGTERM-1)) != 0
	})
	try(t, syscall.Kill(pid, syscall.SIGCONT))
}

// await returns the number of the process that was stopped.
func await(t *testing.T, stopped <-chan int) int {
	t.Helper()
	select {
	case pid := <-stopped:
		if pid == 0 {
			t.Fatal("the part ended before it was stopped")
		}
		return pid
	case <-time.After(patience):
		t.Fatal("the part did not begin")
	}
	return 0
}

// startSlurm starts munge, a controller and a node with 16 pretended processors, without systemd and cgroups.
func startSlurm(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("Slurm's daemons need root")
	}
	if _, err := exec.LookPath("slurmctld"); err != nil {
		t.Setenv("DEBIAN_FRONTEND", "noninteractive")
		command(t, "apt-get", "update")
		command(t, "apt-get", "install", "-y", "--no-install-recommends", "slurmctld", "slurmd", "slurm-client", "munge")
	}
	host, err := os.Hostname()
	try(t, err)
	host, _, _ = strings.Cut(host, ".")
	key := make([]byte, 1024)
	rand.Read(key)
	write(t, filepath.Join(dir, "munge.key"), string(key))
	try(t, os.Chmod(filepath.Join(dir, "munge.key"), 0o400))
	for _, name := range []string{"state", "spool"} {
		try(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	conf := filepath.Join(dir, "slurm.conf")
	ports := freePorts(t, 2)
	write(t, conf, strings.NewReplacer("HOST", host, "DIR", dir, "PORT1", ports[0], "PORT2", ports[1]).Replace(slurmConf))
	t.Setenv("SLURM_CONF", conf)
	daemon(t, dir, "munged", "--foreground", "--force", "--key-file="+dir+"/munge.key", "--socket="+dir+"/munge.socket",
		"--pid-file="+dir+"/munged.pid", "--log-file="+dir+"/munged.log", "--seed-file="+dir+"/munge.seed")
	until(t, "munge listens", func() bool { _, err := os.Stat(dir + "/munge.socket"); return err == nil })
	daemon(t, dir, "slurmctld", "-D", "-c", "-f", conf)
	daemon(t, dir, "slurmd", "-D", "-c", "-f", conf, "-N", host)
	until(t, "the node is idle", func() bool {
		out, err := exec.Command("sinfo", "--noheader", "--format=%T").Output()
		return err == nil && strings.TrimSpace(string(out)) == "idle"
	})
	t.Cleanup(func() { // before the daemons end
		exec.Command("scancel", "--user=root").Run()
		until(t, "all jobs end", func() bool {
			out, err := exec.Command("squeue", "--noheader").Output()
			return err != nil || len(out) == 0
		})
	})
}

// slurmConf shortens the life of a job's credential. A requeued job waits until its credential expires, by default two
// minutes.
const slurmConf = `ClusterName=test
SlurmctldHost=HOST(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=DIR/munge.socket,cred_expire=5
SlurmctldPort=PORT1
SlurmdPort=PORT2
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=2
NodeName=HOST NodeAddr=127.0.0.1 CPUs=16 RealMemory=65536
PartitionName=all Nodes=ALL Default=YES State=UP
`

// daemon starts a program that runs until the test ends.
func daemon(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	try(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, &out)
		}
	})
}

func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		try(t, err)
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports
}

// field returns a field of a job as scontrol shows it.
func field(t *testing.T, job, name string) string {
	t.Helper()
	for _, word := range strings.Fields(command(t, "scontrol", "show", "job", job)) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// restarts returns how often a task went back to the queue; 0 if it has not begun.
func restarts(t *testing.T, task string) int {
	t.Helper()
	n, _ := strconv.Atoi(field(t, task, "Restarts"))
	return n
}

// patience is longer than any step takes on a busy machine.
const patience = 2 * time.Minute

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
