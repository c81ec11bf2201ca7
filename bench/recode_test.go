package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// BenchmarkRecode reads every weight of a quantised folder of 2 GB (with -short, of 0.5 GB) and writes it unchanged, alternating
// with cp -r and sync of the same folder. It reports both times, their ratio, the least processor time of both per GB, and the peak
// memory without mapped files beside three times the largest tensor.
func BenchmarkRecode(b *testing.B) {
	for _, c := range []struct {
		format string
		layers int
	}{{"fp8-block", 9}, {"int4", 17}, {"gptq-order", 17}, {"awq", 17}, {"nvfp4", 16}, {"mxfp4", 17}} {
		b.Run(c.format, func(b *testing.B) {
			layers := c.layers
			if testing.Short() {
				layers /= 4
			}
			dir := b.TempDir()
			model := filepath.Join(dir, "model")
			config := fmt.Sprintf(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "hidden_size": 4096,
				"intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": %d,
				"vocab_size": 256, "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
				"attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false}`, layers)
			format, err := quantise.Parse(c.format)
			if err != nil {
				b.Fatal(err)
			}
			if err := synth.Folder(context.Background(), []byte(config), model, synth.Options{Format: format}); err != nil {
				b.Fatal(err)
			}
			recodeBeside(b, dir, model)
		})
	}
}

func recodeBeside(b *testing.B, dir, model string) {
	m, err := weights.Open(model)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	var largest, peak int64
	for _, t := range m.Infos() {
		largest = max(largest, t.Size())
	}
	run(b, "cp", "-r", model, filepath.Join(dir, "warm-up")) // the source is in the page cache for both
	before := anonymous(os.Getpid())
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-tick.C:
				peak = max(peak, anonymous(os.Getpid())-before)
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	b.SetBytes(m.Size())
	b.ResetTimer()
	var copying, recoding time.Duration
	leastCopying, leastRecoding := time.Hour, time.Hour // of processors
	for i := range b.N {
		b.StopTimer()
		settle(b, dir)
		start, used := time.Now(), processorTime(syscall.RUSAGE_CHILDREN)
		run(b, "cp", "-r", model, filepath.Join(dir, "copy"))
		leastCopying = min(leastCopying, processorTime(syscall.RUSAGE_CHILDREN)-used)
		syscall.Sync()
		copying += time.Since(start)
		settle(b, dir)
		b.StartTimer()
		start, used = time.Now(), processorTime(syscall.RUSAGE_SELF)
		recode(b, m, filepath.Join(dir, fmt.Sprint("out", i)))
		leastRecoding = min(leastRecoding, processorTime(syscall.RUSAGE_SELF)-used)
		syscall.Sync()
		recoding += time.Since(start)
	}
	b.StopTimer()
	close(stop)
	<-watched
	b.ReportMetric(copying.Seconds()/float64(b.N), "cp-s/op")
	b.ReportMetric(recoding.Seconds()/copying.Seconds(), "recode/cp")
	b.ReportMetric(leastCopying.Seconds()/float64(m.Size())*1e9, "cp-cpu-s/GB")
	b.ReportMetric(leastRecoding.Seconds()/float64(m.Size())*1e9, "cpu-s/GB")
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
	b.ReportMetric(float64(3*largest)/1e6, "allowed-MB")
}

// processorTime returns the time that this process, or its children that have ended, have used processors for.
func processorTime(who int) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(who, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// recode writes a model's tensors to files in out, quantised weights through their matrices.
func recode(b *testing.B, m *weights.Model, out string) {
	b.Helper()
	ok := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	d, err := quant.Describe(m)
	ok(err)
	ok(os.Mkdir(out, 0o777))
	var files []*os.File
	for _, f := range m.Files() {
		file, err := os.Create(filepath.Join(out, filepath.Base(f.Path)))
		ok(err)
		defer file.Close()
		_, err = file.Write(f.Head())
		ok(err)
		files = append(files, file)
	}
	var matrix quant.Matrix
	for _, w := range quant.Group(m, d).All {
		store := func(part int, at int64, bytes []byte) error {
			p := w.Parts[part]
			_, err := files[p.Shard].WriteAt(bytes, int64(len(m.Files()[p.Shard].Head()))+p.Begin+at)
			return err
		}
		if w.Quantised == nil {
			ok(store(0, 0, w.Parts[0].Data))
			continue
		}
		for expert := range w.Quantised.Experts() {
			ok(w.Quantised.ReadInto(&matrix, expert))
			ok(w.Quantised.Encode(&matrix, expert, store))
		}
	}
}
