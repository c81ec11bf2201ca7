package report_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// screenshots is the environment variable with the folder for the test's screenshots. A person can look at them.
const screenshots = "LOWTOGGLE_SCREENSHOTS"

// chromium runs a headless browser with a new profile on a page. It returns the browser's output.
func chromium(t *testing.T, page string, flags ...string) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: apt-get install --no-install-recommends chromium")
	}
	if testing.Short() {
		t.Skip("starts a browser")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr", "--user-data-dir=" + t.TempDir()}, flags...)
	cmd := exec.CommandContext(ctx, path, append(args, "file://"+page)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, stderr.String())
	}
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser says: %s", line)
		}
	}
	return stdout.String()
}

// shot takes a screenshot.
func shot(t *testing.T, page, name string, width, height int, flags ...string) image.Image {
	t.Helper()
	folder := os.Getenv(screenshots)
	if folder == "" {
		folder = t.TempDir()
	}
	file := filepath.Join(folder, name+".png")
	chromium(t, page, append(flags, fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+file)...)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	im, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// TestBrowserColours: a browser opens a report without messages, in light and dark colours.
func TestBrowserColours(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(page, written(t, example(" with <odd> \u202e text")), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, theme := range []struct {
		name  string
		flags []string
		dark  bool
	}{{"light", nil, false}, {"dark", []string{"--blink-settings=preferredColorScheme=0"}, true}} {
		im := shot(t, page, theme.name, 1100, 2000, theme.flags...)
		if size := im.Bounds().Size(); size != (image.Point{X: 1100, Y: 2000}) {
			t.Errorf("%s: a screenshot of %v", theme.name, size)
		}
		if paper := color.GrayModel.Convert(im.At(3, 3)).(color.Gray).Y; (paper < 64) != theme.dark || !theme.dark && paper < 250 {
			t.Errorf("%s: the paper has brightness %d", theme.name, paper)
		}
		colours := map[color.Color]bool{}
		for y := range im.Bounds().Dy() {
			for x := 0; x < im.Bounds().Dx(); x += 7 {
				colours[im.At(x, y)] = true
			}
		}
		if len(colours) < 20 { // of text and charts
			t.Errorf("%s: only %d colours", theme.name, len(colours))
		}
	}
}

// TestBrowserPhone: on a phone nothing is wider than the screen, except tables, which scroll.
func TestBrowserPhone(t *testing.T) {
	const phone = 390
	folder := t.TempDir()
	page, wrapper := filepath.Join(folder, "report.html"), filepath.Join(folder, "phone.html")
	frame := fmt.Sprintf(`<!DOCTYPE html><html lang="en"><title>-</title><body style="margin:0"><iframe src="report.html" style="border:0;width:%dpx;height:3000px"></iframe>
<script>onload = () => { const d = document.querySelector("iframe").contentDocument; document.title = "wide " + d.documentElement.scrollWidth }</script></body></html>`, phone)
	for path, data := range map[string][]byte{page: written(t, example(" of "+long+strings.Repeat("x", 200))), wrapper: []byte(frame)} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	dom := chromium(t, wrapper, "--allow-file-access-from-files", "--dump-dom", "--window-size=500,3000")
	if m := regexp.MustCompile(`<title>wide (\d+)</title>`).FindStringSubmatch(dom); m == nil || m[1] != fmt.Sprint(phone) {
		t.Errorf("the page is %v pixels wide, want %d", m, phone)
	}
	shot(t, wrapper, "phone", 500, 3000, "--allow-file-access-from-files")
}
