package transform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// stages are the times at which the stages of a conversion begin, and the host memory then.
type stages struct {
	mu     sync.Mutex
	start  time.Time
	names  []string
	begins []time.Duration
	memory []string
	events map[string]int
}

func (s *stages) progress(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events[e.Stage]++; s.events[e.Stage] == 1 {
		s.names, s.begins, s.memory = append(s.names, e.Stage), append(s.begins, time.Since(s.start)), append(s.memory, hostMemory("VmRSS"))
	}
}

// hostMemory is a line of the process's status, such as the most memory that it has had; Linux alone has it.
func hostMemory(name string) string {
	data, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kib, _ := strconv.Atoi(strings.Fields(value)[0])
			return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
		}
	}
	return "?"
}

// eightBillion is the shape of a model of 8 B weights, with fewer blocks.
const eightBillion = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": %d, "intermediate_size": %d,
 "num_hidden_layers": %d, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": %d, "vocab_size": %d,
 "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "torch_dtype": "bfloat16",
 "tie_word_embeddings": false, "hidden_act": "silu"}`

// randomTokens are a file of sequences for calibration and evaluation.
func randomTokens(t *testing.T, path string, vocabulary, calibration, evaluation, length int) {
	rng := rand.New(rand.NewPCG(1, 2))
	head, _, err := weights.EncodeHeader([]weights.Info{{Name: tokens.Calibration, DType: weights.I32, Shape: []int{calibration, length}},
		{Name: tokens.Evaluation, DType: weights.I32, Shape: []int{evaluation, length}}}, nil)
	testmodel.OK(t, err)
	for range (calibration + evaluation) * length {
		head = binary.LittleEndian.AppendUint32(head, uint32(rng.IntN(vocabulary)))
	}
	testmodel.OK(t, os.WriteFile(path, head, 0o666))
}

// TestGPUSearchTime converts a random model for a budget of loss on a GPU, and logs the time of each stage. BLOCKS says how
// many blocks of the shape of an 8 B model it has, FOLDER where the model is kept, and STATISTICS where statistics and the
// result are kept; without BLOCKS the model is a small one. bench/search.sh runs it.
func TestGPUSearchTime(t *testing.T) {
	device, err := evaluate.OpenDevice(0)
	if errors.Is(err, cuda.ErrNoGPU) {
		t.Skip(err)
	}
	testmodel.OK(t, err)
	defer func() { testmodel.OK(t, device.Close()) }()
	dir, blocks, hidden, ffn, vocabulary, sequences, length := t.TempDir(), 2, 256, 768, 1000, 16, 64
	if n := os.Getenv("BLOCKS"); n != "" {
		blocks, err = strconv.Atoi(n)
		testmodel.OK(t, err)
		hidden, ffn, vocabulary, sequences, length = 4096, 14336, 32000, 128, 1024
	}
	if f := os.Getenv("FOLDER"); f != "" {
		dir = f
	}
	work := dir
	if f := os.Getenv("STATISTICS"); f != "" {
		work = f
	}
	model, file, out := filepath.Join(dir, "model"), filepath.Join(dir, "tokens.safetensors"), filepath.Join(work, "out")
	if _, err := os.Stat(model); err != nil {
		config := fmt.Sprintf(eightBillion, hidden, ffn, blocks, hidden/32, vocabulary)
		testmodel.OK(t, synth.Folder(t.Context(), []byte(config), model, synth.Options{}))
	}
	randomTokens(t, file, vocabulary, sequences, sequences/2, length)
	m, err := weights.Open(model)
	testmodel.OK(t, err)
	defer m.Close()
	f, err := tokens.Open(file)
	testmodel.OK(t, err)
	card, err := cost.FindCalibration(cost.UsualGPU)
	testmodel.OK(t, err)
	passes, err := ParsePasses("trellis,compensate")
	testmodel.OK(t, err)

	s := &stages{start: time.Now(), events: map[string]int{}}
	tok, err := NewTokens(m, f, nil, nil, 0)
	testmodel.OK(t, err)
	tok.Dir, tok.Device = filepath.Join(work, "search"), device
	most := math.Log1p(0.001)
	c, err := Convert(t.Context(), m, out, ConvertOptions{Options: Options{Passes: passes, Budget: pass.Budget{MaxLoss: &most}, Tokens: tok,
		Cost: card, Workload: cost.Workload{Prefill: 1}, Progress: s.progress}})
	testmodel.OK(t, err)
	testmodel.OK(t, tok.Remove())
	total := time.Since(s.start)
	t.Logf("%s, %d cores, %d blocks", device.Name(), runtime.GOMAXPROCS(0), blocks)
	for i, name := range s.names {
		end := total
		if i+1 < len(s.names) {
			end = s.begins[i+1]
		}
		t.Logf("%-14s from %6.1f s, %6.1f s, %5d events, host memory %s", name, s.begins[i].Seconds(), (end - s.begins[i]).Seconds(), s.events[name], s.memory[i])
	}
	for _, trial := range c.Plan.Search.Trials {
		t.Logf("trial: energy %.5f, divergence %.3g, kept %v", trial.Energy, trial.Divergence, trial.Kept)
	}
	t.Logf("total %.1f s; host memory %s at most; loss %+.6f nats", total.Seconds(), hostMemory("VmHWM"), c.Loss.Difference)
}
